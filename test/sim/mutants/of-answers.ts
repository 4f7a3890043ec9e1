/** Faults in reading what an attempt, a monitor or a void has proven. */
import { fault, type Mutant } from './mutant.ts'

const verdict = 'src/protocol/verdict.ts'
const inquiry = 'src/protocol/inquiry.ts'
const transitions = 'src/protocol/transitions.ts'

export const ofAnswers: readonly Mutant[] = [
  fault(
    'a time-out means that nothing happened',
    'section 6, P26',
    'src/engine/http.ts',
    'neverDelivered: proves && neverConnected.has(codeOf(error)), detail',
    'neverDelivered: true, detail',
  ),
  fault(
    'a refused connection is believed whoever reports it',
    'P30, H17',
    'src/engine/http.ts',
    'proves = hop === 0 && provesNonDelivery(context.transport)',
    'proves = true',
  ),
  fault(
    'a refused connection behind a redirect proves that nothing was delivered',
    'section 6, H16',
    'src/engine/http.ts',
    'proves = hop === 0 && provesNonDelivery(context.transport)',
    'proves = provesNonDelivery(context.transport)',
  ),
  fault(
    'what is refused behind a redirect clears the request before it',
    'P27, H16',
    'src/protocol/guards.ts',
    "(!state.attempt.exact || 'repeated' in event)",
    '!state.attempt.exact',
  ),
  fault(
    'a transport that repeats is taken for one that does not',
    'P30, H49',
    'src/protocol/transition.ts',
    'serverAt: serverNow, exact: context.exact }',
    'serverAt: serverNow, exact: true }',
  ),
  fault(
    'a later attempt that was never delivered clears an earlier one',
    'P19, H54',
    'src/protocol/updates.ts',
    '(mayHaveCopies(record, event) ? { doubt: firstHandOver(record) } : {})',
    '(mayHaveCopies(record, event) ? { doubt: firstHandOver(record) } : { doubt: null })',
  ),
  fault(
    'any page with status 200 is success',
    'section 6, H24',
    verdict,
    '  const unmarked = dialect.marker !== null && !marked',
    '  const unmarked = false',
  ),
  {
    name: 'a login page behind a redirect is success',
    rule: 'section 6, H51',
    edits: [
      {
        file: 'src/engine/http.ts',
        find: 'if (next !== null && response.status === 303 && isProof) {',
        replace: 'if (next !== null && response.status === 303) {',
      },
    ],
  },
  fault(
    'accepted work is success',
    'section 6, H33',
    verdict,
    '  if (exchange.status === 202 && !(appAccepts === true && context.monitorUrl === null)) {',
    '  if (exchange.status === 202 && appAccepts === true && context.monitorUrl === null) {',
  ),
  fault(
    'a replayed failure is tried again',
    'section 6, B75',
    verdict,
    "isReplay(heard, dialect) ? 'storedFailure' : 'ambiguous'",
    "'ambiguous'",
  ),
  fault(
    'an error of the server means that nothing happened',
    'section 6',
    verdict,
    "  if (status >= 500) return isReplay(heard, dialect) ? 'storedFailure' : 'ambiguous'",
    "  if (status >= 500) return isReplay(heard, dialect) ? 'storedFailure' : 'refusedWithoutEffect'",
  ),
  fault(
    'a refusal without proof ends an intent in doubt',
    'P27, H25, H26',
    transitions,
    "      to({ name: 'rejected' }, 'section 6: not in doubt', ['!inDoubt'], ['keepAnswer', 'handedOver', 'settle']),",
    "      to({ name: 'rejected' }, 'section 6: not in doubt', [], ['keepAnswer', 'handedOver', 'settle']),",
  ),
  fault(
    'a conflict in doubt is a conflict',
    'section 6, H22',
    transitions,
    "      ...unknown('conflict_in_doubt', 'section 6, H22', ['inDoubt']),\n",
    '',
  ),
  fault(
    'what can no longer be tried has failed',
    'P27, F13',
    transitions,
    "    to({ name: 'unknown', because }, rule, when, [...set, 'keepDoubt', 'handedOver', 'notDue']),",
    "    to({ name: 'rejected' }, rule, when, [...set, 'handedOver', 'settle']),",
  ),
  fault(
    'a missing monitor means failed',
    'P38',
    inquiry,
    "(status === 404 || status === 410)) return nothing({ type: 'monitorMissing', status })",
    "(status === 404 || status === 410))\n    return nothing({ type: 'refused', status, proof: true, answer: answerOf(exchange, context.dialect) })",
  ),
  fault(
    'a poll that failed is an operation that failed',
    'P38',
    transitions,
    "      to({ name: 'processing' }, 'P39, B89', ['pollErrorsLeft'], ['ask'], ['persist']),",
    "      to({ name: 'rejected' }, 'P39, B89', [], ['settle']),",
  ),
  fault(
    'the result of another payload is taken for the own',
    'section 16, H37',
    inquiry,
    '  if (document.requestDigest !== undefined && document.requestDigest !== context.bodyDigest) {',
    '  if (document.requestDigest === null) {',
  ),
  fault(
    'a void that came too late counts as voided',
    'P44, P57, H1',
    inquiry,
    "  if (meaning === 'expired') return nothing({ type: 'expired', status, answer: null })",
    "  if (meaning === 'expired') return nothing({ type: 'voided', status })",
  ),
  fault(
    'a failed look-up means that it is not there',
    'P43, H36',
    inquiry,
    "  if (status === 401 || status === 403) return nothing({ type: 'inquiryUnauthorized', status })",
    "  if (status === 404 && context.kind === 'lookup') return nothing({ type: 'voided', status })\n  if (status === 401 || status === 403) return nothing({ type: 'inquiryUnauthorized', status })",
  ),
  fault(
    'a server that does not de-duplicate is asked again',
    'P1, F24, H4',
    'src/protocol/dialects/none.ts',
    '  deduplicates: false,\n  methods: [],',
    "  deduplicates: true,\n  retentionMs: 86_400_000,\n  methods: ['POST', 'PUT'],",
  ),
]
