/** One try of a call: hands it over or asks about it, and writes down what came of that (P65). */
import { errorText } from '../error-text.ts'
import type { CallAbsent, CallDone, CallRefused, CallUndelivered } from './call-ends.ts'
import { type Recorded, record, recordPatiently, type Try } from './call-record.ts'
import type { CallReport, WantedCall } from './call-row.ts'
import type { Held } from './held.ts'
import { elapsedMs, type Moment } from './moment.ts'
import { type Tried, withinLimit } from './time-limit.ts'

/** What `send` and `ask` get. */
export interface CallContext<Request> {
  /** What is asked for: that of the first try, so that one id never means two things. */
  readonly request: Request
  /** The same on every try and after every takeover. A service that takes keys gets it as its key. */
  readonly operationId: string
  /** The execution number of the work, for services that take a fencing token (P63). */
  readonly epoch: number
  /** The idempotency key of the work. */
  readonly key: string
  /** Which hand-over of this call it is, from 1; for `ask`, how many there were. */
  readonly attempt: number
  /** Aborted at the time limit, when the work is lost, and when the worker stops. Pass it on. */
  readonly signal: AbortSignal
}

/** A call whose types have been left behind. */
export interface Calling<Transaction> {
  readonly held: Held<Transaction>
  readonly name: string
  readonly wanted: WantedCall
  readonly timeoutMs: number
  send(context: CallContext<unknown>): Promise<CallDone<unknown> | CallRefused<unknown> | CallUndelivered>
  ask(context: CallContext<unknown>): Promise<CallDone<unknown> | CallRefused<unknown> | CallAbsent>
}

/**
 * Hands it over, unless it was held up.
 *
 * @param since a moment before the try was written down.
 */
export async function sent<Transaction>(calling: Calling<Transaction>, tried: Try, since: Moment): Promise<Heard> {
  const heldUp = whyNotSend(calling, since)
  if (heldUp !== null) return heard(calling, tried, { outcome: 'undelivered', error: heldUp })
  // The same tick: nothing may come between the check and the hand-over (P35, P65).
  const answer = await limited(calling, tried, (context) => calling.send(context))
  if (answer.kind === 'ended') return heard(calling, tried, answer.value)
  return heard(calling, tried, openReport(calling, answer), causeOf(answer))
}

/** A worker that was frozen, or has lost the work, hands nothing over: it could arrive when nobody expects it. */
function whyNotSend<Transaction>({ held, wanted: { service } }: Calling<Transaction>, since: Moment): string | null {
  // The raw lease too: `lost` trusts a lock of ours, which a dead connection does not hold.
  if (held.lost() !== null || held.leaseOver()) {
    return 'The worker had lost the work, or was stopping, before it was sent.'
  }
  if (elapsedMs(held.clock, since) >= service.transitMs / 2) return 'It was held up for too long before it was sent.'
  return null
}

/** Asks whether it happened. */
export async function asked<Transaction>(calling: Calling<Transaction>, tried: Try): Promise<Heard | 'absent'> {
  const answer = await limited(calling, tried, (context) => calling.ask(context))
  if (answer.kind === 'ended') {
    return answer.value === 'absent' ? 'absent' : heard(calling, tried, answer.value)
  }
  return heard(calling, tried, openReport(calling, answer), causeOf(answer))
}

type OpenEnd = Exclude<Tried<unknown>, { kind: 'ended' }>

function openReport<Transaction>({ held, timeoutMs }: Calling<Transaction>, answer: OpenEnd): CallReport {
  switch (answer.kind) {
    case 'threw':
      return { outcome: 'open', error: errorText(answer.error) }
    case 'timeUp':
      return { outcome: 'open', error: `There was no answer within ${timeoutMs} ms.` }
    case 'lost':
      // The row says begun, which is all that is known; an answer that comes later is looked at then.
      throw held.lost() ?? new Error('The work was lost.')
  }
}

function causeOf(answer: OpenEnd): unknown {
  return answer.kind === 'threw' ? answer.error : undefined
}

/** Calls the app's function in this tick, with what the row says, and turns what it gives into a report. */
function limited<Transaction, Given extends CallDone<unknown> | CallRefused<unknown> | CallUndelivered | CallAbsent>(
  { held, wanted, timeoutMs }: Calling<Transaction>,
  tried: Try,
  run: (context: CallContext<unknown>) => Promise<Given>,
): Promise<Tried<CallReport | (Given extends CallAbsent ? 'absent' : never)>> {
  const { operationId, request, attempts } = tried.sent
  const { clock, signal } = held
  return withinLimit(
    { clock, timeoutMs, signal },
    async (limitSignal) => {
      const given = await run({
        request: JSON.parse(request) as unknown,
        operationId,
        epoch: wanted.epoch,
        key: held.id.key,
        attempt: attempts,
        signal: limitSignal,
      })
      return reportOf(given) as CallReport | (Given extends CallAbsent ? 'absent' : never)
    },
    (late) => {
      if (late !== 'absent') void keepLate(held, tried, late)
    },
  )
}

/** @throws for what is none of these: what the service did is then not known. */
function reportOf(
  given: CallDone<unknown> | CallRefused<unknown> | CallUndelivered | CallAbsent,
): CallReport | 'absent' {
  switch (given.outcome) {
    case 'done':
    case 'refused':
      return { outcome: given.outcome, value: jsonText(given.value, 'value') }
    case 'undelivered':
      return { outcome: 'undelivered', error: given.error === undefined ? 'It was not sent.' : errorText(given.error) }
    case 'absent':
      return 'absent'
    default:
      throw new TypeError('A call must resolve with done(...), refused(...), undelivered(...) or, asked, absent().')
  }
}

/** What the row says after a try, and why it is not known, if it is not. */
export interface Heard {
  readonly recorded: Recorded
  readonly cause: unknown
}

async function heard<Transaction>(
  { held }: Calling<Transaction>,
  tried: Try,
  report: CallReport,
  cause?: unknown,
): Promise<Heard> {
  return { recorded: await recordPatiently(held, tried, report), cause }
}

async function keepLate<Transaction>(held: Held<Transaction>, tried: Try, report: CallReport): Promise<void> {
  try {
    await record(held, tried, report)
  } catch (error) {
    held.tell('workerTrouble', `A late answer to the call ${tried.name} could not be kept: ${errorText(error)}`, error)
  }
}

/** @throws TypeError for what has none. */
export function jsonText(value: unknown, what: string): string {
  const text = JSON.stringify(value) as string | undefined
  if (text === undefined) throw new TypeError(`The ${what} of a call must have a JSON form.`)
  return text
}
