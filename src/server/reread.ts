/** Answers that were kept as a reference: read again for whoever asks today (P60). */

import { hasNoBody } from './answer-for.ts'
import type { Caller } from './caller.ts'
import type { KeyRow, StoredAnswer } from './decide.ts'
import { EntryError } from './errors.ts'
import type { RereadContext, Settings } from './options.ts'

/**
 * The answer with its body, or without one where there is none any more. Authorisation has been asked before.
 *
 * @throws EntryError this request has executed nothing.
 */
export async function reread<Transaction>(
  settings: Settings<Transaction>,
  { request, scope }: Caller,
  key: string,
  answer: StoredAnswer,
): Promise<StoredAnswer> {
  const { body } = answer
  if (body.kind !== 'reference') return answer
  if (hasNoBody(answer.status)) return { ...answer, body: { kind: 'omitted' } }
  const { operation } = settings
  const { reference } = body
  const found = await read(settings, { reference, answer, request, scope, operation, key })
  if (found === null) return { ...answer, body: { kind: 'omitted' } }
  return {
    ...answer,
    body: { kind: 'bytes', bytes: typeof found === 'string' ? new TextEncoder().encode(found) : found },
  }
}

async function read<Transaction>(
  settings: Settings<Transaction>,
  context: RereadContext,
): Promise<Uint8Array | string | null> {
  try {
    const found: unknown = (await settings.reread?.(context)) ?? null
    // Whatever else it gives would go out as no body, without a word.
    if (found === null || typeof found === 'string' || found instanceof Uint8Array) return found
    throw new TypeError('reread must give a text, bytes or null.')
  } catch (error) {
    throw new EntryError('reread', error)
  }
}

/** The same for the answer that a monitor shows. */
export async function rereadRow<Transaction>(
  settings: Settings<Transaction>,
  caller: Caller,
  key: string,
  row: KeyRow,
): Promise<KeyRow> {
  const { task, answer } = row
  if (task !== null) {
    if (task.result === null) return row
    return { ...row, task: { ...task, result: await reread(settings, caller, key, task.result) } }
  }
  return answer === null ? row : { ...row, answer: await reread(settings, caller, key, answer) }
}
