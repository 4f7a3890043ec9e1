/**
 * A call to a service that has no transaction with our database, as a row that was committed before the call (P65).
 * Pure: what may be done about a call is decided here, from what is written down and from what kind of service it is.
 */

/**
 * What is known about the other service. Nobody else can know it, so nothing is assumed:
 *
 * - `takesKeys`: it takes an operation id and does the same id once, as long as it remembers one: `retentionMs`.
 * - `canBeAsked`: it does not, but tells whether an operation happened.
 * - `neither`: what broke off stays unknown until a person finds out.
 *
 * `transitMs` is the longest time from writing a call down to its arrival. A call that was held up for half of it is not
 * made any more; only after all of it does "no, that did not happen" mean no.
 */
export type ServiceKind =
  | { readonly kind: 'takesKeys'; readonly retentionMs: number; readonly transitMs: number }
  | { readonly kind: 'canBeAsked'; readonly transitMs: number }
  | { readonly kind: 'neither'; readonly transitMs: number }

/** The end of a call: it took effect, or it surely did not. */
export type CallOutcome = 'done' | 'refused'

/** One call: what was intended, and what is known. */
export interface CallRow {
  /** The same on every try, and told to the service. */
  readonly operationId: string
  readonly kind: ServiceKind['kind']
  /**
   * `begun`: handed over, or about to be; whether it took effect is not known. `undelivered`: every try so far surely
   * never reached the service. `unknown`: nobody can find out but a person.
   */
  readonly state: 'begun' | 'undelivered' | 'done' | 'refused' | 'unknown'
  /** JSON text of what is asked for; fixed by the first try, so that the id never means two things. */
  readonly request: string
  /** JSON text of what the service said; null while it said nothing. */
  readonly value: string | null
  /** Execution that last handed it over. */
  readonly epoch: number
  readonly attempts: number
  /** Epoch ms of the first hand-over that was not surely undelivered. */
  readonly begunAt: number
  /** Epoch ms of the last one. */
  readonly lastBegunAt: number
  /** What last went wrong, for a person. */
  readonly error: string | null
  /** What a worker that had lost the work heard all the same: evidence for a person, and no more (P63). */
  readonly lateAnswer: string | null
  /** What the person who settled it wrote. */
  readonly note: string | null
}

/** What to do about a call now. */
export type CallDecision =
  /** It is known how it ended. */
  | { readonly kind: 'known'; readonly outcome: CallOutcome; readonly value: string | null }
  /** Commit this row, then hand it over. */
  | { readonly kind: 'send'; readonly row: CallRow }
  /** Commit this row, then ask whether it happened. */
  | { readonly kind: 'ask'; readonly row: CallRow }
  /** Neither sending nor asking says anything before this time, epoch ms. */
  | { readonly kind: 'later'; readonly at: number }
  /** Commit this row: a person has to find out. */
  | { readonly kind: 'unknown'; readonly row: CallRow }

/** What a worker wants to call. */
export interface WantedCall {
  readonly operationId: string
  readonly service: ServiceKind
  /** JSON text. */
  readonly request: string
  readonly epoch: number
}

/**
 * P65. A row that is there without a result was left by a try that broke off: a time limit, a crash, a takeover (H14).
 *
 * @param row null for the first try.
 * @param askedAbsent the service was asked just now, in this execution, and said that it did not happen.
 */
export function decideCall(row: CallRow | null, wanted: WantedCall, now: number, askedAbsent = false): CallDecision {
  const { operationId, service, request, epoch } = wanted
  if (row === null) {
    const first: CallRow = {
      operationId,
      kind: service.kind,
      state: 'begun',
      request,
      value: null,
      epoch,
      attempts: 1,
      begunAt: now,
      lastBegunAt: now,
      error: null,
      lateAnswer: null,
      note: null,
    }
    return { kind: 'send', row: first }
  }
  const again: CallRow = {
    ...row,
    kind: service.kind,
    state: 'begun',
    epoch,
    attempts: row.attempts + 1,
    lastBegunAt: now,
  }
  switch (row.state) {
    case 'done':
    case 'refused':
      return { kind: 'known', outcome: row.state, value: row.value }
    case 'unknown':
      return { kind: 'unknown', row }
    case 'undelivered':
      return { kind: 'send', row: { ...again, begunAt: now } }
    case 'begun':
      break
  }
  switch (service.kind) {
    case 'takesKeys':
      if (row.kind !== 'takesKeys') {
        return { kind: 'unknown', row: leftOpen(row, 'An earlier release handed it over without the operation id.') }
      }
      // Past this the service may have forgotten the id, and would do it once more (P35, seen from the other side).
      if (now - row.begunAt + service.transitMs >= service.retentionMs) {
        return { kind: 'unknown', row: leftOpen(row, 'The service may have forgotten the operation id by now.') }
      }
      return { kind: 'send', row: again }
    case 'canBeAsked':
      if (askedAbsent) return { kind: 'send', row: { ...again, begunAt: now } }
      if (now < row.lastBegunAt + service.transitMs) return { kind: 'later', at: row.lastBegunAt + service.transitMs }
      return { kind: 'ask', row: { ...row, epoch } }
    case 'neither':
      return {
        kind: 'unknown',
        row: leftOpen(row, row.error ?? 'It was begun, and nobody heard how it ended.'),
      }
  }
}

/** What a try came to. `open`: whether it took effect is not known. */
export type CallReport =
  | { readonly outcome: CallOutcome; readonly value: string }
  | { readonly outcome: 'undelivered'; readonly error: string }
  | { readonly outcome: 'open'; readonly error: string }

/**
 * What the row says after a try.
 *
 * @param priorDoubt an earlier try may have taken effect: this one's never having arrived says nothing about it (P19).
 */
export function afterTry(row: CallRow, report: CallReport, priorDoubt: boolean): CallRow {
  if (report.outcome === 'undelivered') {
    return { ...row, state: priorDoubt ? 'begun' : 'undelivered', error: report.error }
  }
  if (report.outcome === 'open') return { ...row, error: report.error }
  return { ...row, state: report.outcome, value: report.value, error: null }
}

/** True while the row still tells of this very try: nobody has tried since, and nobody settled it. */
export function isThisTry(row: CallRow, { epoch, attempts }: Pick<CallRow, 'epoch' | 'attempts'>): boolean {
  return row.state === 'begun' && row.epoch === epoch && row.attempts === attempts
}

/**
 * What was heard by somebody whose word does not count any more: changes no state, and is kept for a person (P63).
 *
 * @returns null where it tells nothing that is not written down: no answer at all, the very state that the row has, or
 * a try that the row has never known.
 */
export function heardLate(row: CallRow, sent: Pick<CallRow, 'epoch' | 'attempts'>, report: CallReport): CallRow | null {
  if (report.outcome === 'open' || row.attempts < sent.attempts) return null
  const ours = row.epoch === sent.epoch && row.attempts === sent.attempts && row.note === null
  if (ours && row.state === report.outcome) return null
  // An answer says more than "it never arrived".
  if (report.outcome === 'undelivered') {
    if (row.lateAnswer !== null) return null
    return { ...row, lateAnswer: JSON.stringify({ epoch: sent.epoch, ...report }) }
  }
  const { outcome, value } = report
  return { ...row, lateAnswer: JSON.stringify({ epoch: sent.epoch, outcome, value: JSON.parse(value) as unknown }) }
}

/**
 * What a person can find out: `done`, it took effect; `refused`, it surely did not and is not to; `undelivered`, it
 * surely did not and never will by itself, so it may be made.
 */
export type CallFinding = CallOutcome | 'undelivered'

/** A person found out. Null: it was settled before. */
export function settledCall(row: CallRow, finding: CallFinding, value: string | null, note: string): CallRow | null {
  if (row.state === 'done' || row.state === 'refused') return null
  return { ...row, state: finding, value: finding === 'undelivered' ? null : value, note }
}

/** True while the call may have taken effect and nobody knows. */
export function isOpen({ state }: CallRow): boolean {
  return state === 'begun' || state === 'unknown'
}

function leftOpen(row: CallRow, error: string): CallRow {
  return { ...row, state: 'unknown', error }
}
