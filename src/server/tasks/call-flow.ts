/** A call from the first decision to its end: decide under the lock, commit, try, and again (P65). */
import { canonicalJson } from '../../protocol/json.ts'
import { CommitUnknownError } from '../errors.ts'
import type { CallResult } from './call-ends.ts'
import { record, type Try } from './call-record.ts'
import { type CallDecision, type CallRow, decideCall } from './call-row.ts'
import { asked, type Calling, type Heard, sent } from './call-try.ts'
import { CallOpenError, CallUndeliveredError, CallUnknownError } from './errors.ts'
import { type Moment, moment } from './moment.ts'

/** What was decided about the call, and written down. */
interface Decided {
  readonly decision: CallDecision
  /** As it was found, null for the first try. */
  readonly before: CallRow | null
  /** A moment before it was written down: how long a call was held up counts from here. */
  readonly since: Moment
}

/**
 * Makes the call, asks about it, or finds that it is known.
 *
 * @throws CallOpenError, CallUndeliveredError, CallUnknownError, WorkLostError, StoreUnavailableError, CommitUnknownError
 */
export async function makeCall<Transaction>(
  calling: Calling<Transaction>,
): Promise<CallResult<unknown, unknown, unknown>> {
  let askedAbsent = false
  for (;;) {
    const { decision, before, since } = await decided(calling, askedAbsent)
    switch (decision.kind) {
      case 'known':
        return result(decision.outcome, decision.value, before?.request ?? calling.wanted.request)
      case 'later':
        throw new CallOpenError(calling.name, `Whether ${calling.name} took effect cannot be asked yet.`, decision.at)
      case 'unknown':
        throw unknownError(calling, decision.row.error)
      case 'send': {
        const priorDoubt = before !== null && before.state === 'begun' && !askedAbsent
        return ended(calling, await sent(calling, { ...tryOf(calling, decision.row), priorDoubt }, since))
      }
      case 'ask': {
        const answer = await asked(calling, { ...tryOf(calling, decision.row), priorDoubt: true })
        if (answer !== 'absent') return ended(calling, answer)
        askedAbsent = true
      }
    }
  }
}

function tryOf<Transaction>({ name, wanted }: Calling<Transaction>, sent: CallRow): Omit<Try, 'priorDoubt'> {
  return { name, sent, wanted }
}

/** Decides under the lock, and commits what it came to before anything is sent (P65). */
async function decided<Transaction>(calling: Calling<Transaction>, askedAbsent: boolean): Promise<Decided> {
  const { held, name, wanted } = calling
  const since = moment(held.clock)
  let found: Omit<Decided, 'since'> | null = null
  try {
    found = await held.effect(`The call ${name}`, async (unit, now) => {
      const before = await unit.readCall(held.id, name)
      const decision = decideCall(before, wanted, now, askedAbsent)
      found = { decision, before }
      const commit = 'row' in decision
      if (commit) await unit.saveCall(held.id, name, decision.row)
      return { commit, value: found }
    })
  } catch (error) {
    const planned: Omit<Decided, 'since'> | null = found
    if (planned !== null && error instanceof CommitUnknownError) await notSent(calling, planned, askedAbsent, error)
    throw error
  }
  const { before } = found
  if (before !== null && !askedAbsent && !sameJson(before.request, wanted.request)) {
    held.tell('requestChanged', `The call ${name} was made with another request before, and goes on with that.`)
  }
  return { ...found, since }
}

/** Nobody knows whether the row was committed, but nothing was sent: that is worth writing down, or it looks begun. */
async function notSent<Transaction>(
  calling: Calling<Transaction>,
  { decision, before }: Omit<Decided, 'since'>,
  askedAbsent: boolean,
  cause: CommitUnknownError,
): Promise<void> {
  if (decision.kind !== 'send') return
  const priorDoubt = before !== null && before.state === 'begun' && !askedAbsent
  const tried: Try = { ...tryOf(calling, decision.row), priorDoubt }
  const error = 'Whether it was written down was not known, so it was not sent.'
  await record(calling.held, tried, { outcome: 'undelivered', error }).catch(() => {
    // Then it stays begun, which is the safe side.
  })
  throw priorDoubt
    ? new CallOpenError(calling.name, error, null, cause)
    : new CallUndeliveredError(calling.name, error, cause)
}

function ended<Transaction>(
  calling: Calling<Transaction>,
  { recorded: { row, stale, retryAt }, cause }: Heard,
): CallResult<unknown, unknown, unknown> {
  const { held, name } = calling
  if (stale || row === null) {
    throw held.lose(`The answer to the call ${name} came when somebody else had the work; it is kept as evidence.`)
  }
  switch (row.state) {
    case 'done':
    case 'refused':
      return result(row.state, row.value, row.request)
    case 'undelivered':
      throw new CallUndeliveredError(name, `The call ${name} surely did not arrive: ${row.error}`, cause)
    case 'unknown':
      throw unknownError(calling, row.error, cause)
    case 'begun':
      throw new CallOpenError(name, `Whether the call ${name} took effect is not known: ${row.error}`, retryAt, cause)
  }
}

function unknownError<Transaction>(
  { name, wanted }: Calling<Transaction>,
  why: string | null,
  cause?: unknown,
): CallUnknownError {
  const message = `Nobody can find out whether the call ${name} took effect, but a person: ${why}`
  return new CallUnknownError(name, wanted.operationId, message, cause)
}

function result(
  outcome: 'done' | 'refused',
  value: string | null,
  request: string,
): CallResult<unknown, unknown, unknown> {
  return {
    outcome,
    value: value === null ? null : (JSON.parse(value) as unknown),
    request: JSON.parse(request) as unknown,
  }
}

function sameJson(a: string, b: string): boolean {
  return a === b || canonicalJson(JSON.parse(a)) === canonicalJson(JSON.parse(b))
}
