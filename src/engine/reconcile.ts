/** Asking the app's own code by business identity, and what follows from its word (P43). */
import type { Reconciled, Verdict } from '../protocol/events.ts'
import type { Answer } from '../protocol/record.ts'
import { keptHeaders } from '../protocol/verdict.ts'
import type { Announcer } from './announcer.ts'
import type { AskApp } from './app-code.ts'
import type { Loaded } from './ledger.ts'
import type { OperationOptions } from './options.ts'
import { viewOf } from './view.ts'

/** What the app said, as an event and the body of the answer that it found. */
export interface AppFinding {
  readonly event: Reconciled | Extract<Verdict, { type: 'done' }>
  readonly body: Uint8Array | null
}

/** Asks the operation's `reconcile`. Null when it has none, is undecided, or fails: nothing is concluded (P28). */
export async function askReconcile(
  loaded: Loaded,
  reconcile: OperationOptions['reconcile'],
  askApp: AskApp,
  announcer: Announcer,
): Promise<AppFinding | null> {
  if (reconcile === undefined) return null
  const { record } = loaded
  try {
    const { word, read } = await askApp(async () => {
      const word = await reconcile(viewOf(loaded))
      return { word, read: word?.found === true ? await answerFrom(word.response) : null }
    })
    if (word?.found === false) return { event: { type: 'absent' }, body: null }
    // Whatever else the app's code gives, in the dark included, is no conclusion.
    if (word?.found !== true || read === null) return null
    const { answer, body } = read
    if (word.byKey === true && answer !== null) return { event: { type: 'done', answer }, body }
    return { event: { type: 'foundElsewhere', answer }, body }
  } catch (error) {
    announcer.warn({
      code: 'app_code_failed',
      message: `reconcile() of ${record.operation} failed; nothing is concluded.`,
      intentId: record.id,
      key: record.key,
      error,
    })
    return null
  }
}

/** The answer that the app's reconcile gave, read whole. */
async function answerFrom(response: Response | undefined): Promise<{ answer: Answer | null; body: Uint8Array | null }> {
  if (response === undefined) return { answer: null, body: null }
  const body = new Uint8Array(await response.arrayBuffer())
  return {
    answer: {
      status: response.status,
      headers: keptHeaders(response.headers),
      url: response.url,
      body: body.length === 0 ? 'empty' : 'stored',
      replayed: false,
    },
    body,
  }
}
