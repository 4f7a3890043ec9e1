/** Holes of what an attempt proved: foreign answers, connections that were made after all, copies. */
import type { Hole } from './hole.ts'
import { minute, network, open, pass, person, second, submit } from './script.ts'

export const ofNetworks: readonly Hole[] = [
  {
    hole: 'H16',
    schedule: 'The server commits and answers with a redirect, whose address refuses the connection; the user cancels.',
    rule: 'section 6, P30',
    setting: { provesNonDelivery: true },
    steps: [
      open(0),
      network('redirect-after', 'refused'),
      submit('order-1'),
      pass(80),
      person('cancel', 'order-1'),
      pass(minute),
    ],
    ends: [{ intent: 'order-1', state: 'succeeded', effects: 1 }],
    without: {
      name: 'a connection refused behind a redirect proves non-delivery',
      edits: [
        {
          file: 'src/engine/http.ts',
          find: 'proves = hop === 0 && provesNonDelivery(context.transport)',
          replace: 'proves = provesNonDelivery(context.transport)',
        },
      ],
    },
  },
  {
    hole: 'H17',
    schedule:
      'A transport that retries by itself loses the answer and is refused on its own second try; the user cancels.',
    rule: 'P30',
    setting: { provesNonDelivery: true, repeats: true },
    steps: [open(0), network('refused-after'), submit('order-1'), pass(80), person('cancel', 'order-1'), pass(minute)],
    ends: [{ intent: 'order-1', state: 'succeeded', effects: 1 }],
    without: {
      name: 'a transport that repeats is believed',
      edits: [
        {
          file: 'src/engine/http.ts',
          find: 'return transport.provesNonDelivery && !transport.repeats',
          replace: 'return transport.provesNonDelivery',
        },
        { file: 'src/engine/runner.ts', find: 'exact: !transport.repeats,', replace: 'exact: true,' },
      ],
    },
  },
  {
    hole: 'H24',
    schedule: 'A captive portal answers with a page, then with JSON, both with status 200.',
    rule: 'section 6',
    steps: [open(0), network('portal', 'foreign-json'), submit('order-1'), pass(minute)],
    ends: [{ intent: 'order-1', state: 'succeeded', effects: 1 }],
    without: {
      name: 'any 2xx that looks right is a success',
      edits: [
        {
          file: 'src/protocol/verdict.ts',
          find: 'if (unmarked && appAccepts !== true) return',
          replace: 'if (unmarked && appAccepts === undefined) return',
        },
      ],
    },
  },
  {
    hole: 'H25',
    schedule: 'The answer is lost, the permission is revoked, and the second attempt gets a 403.',
    rule: 'P27',
    steps: [
      open(0),
      network('answer-lost'),
      submit('order-1'),
      pass(100),
      { do: 'revoke', user: 'alice' },
      pass(minute),
    ],
    ends: [{ intent: 'order-1', state: 'succeeded', effects: 1 }],
    without: {
      name: 'a refusal without proof ends doubt',
      edits: [
        {
          file: 'src/protocol/transitions.ts',
          find: "'section 6: not in doubt', ['!inDoubt'],",
          replace: "'section 6: not in doubt', [],",
        },
      ],
    },
  },
  {
    hole: 'H26',
    schedule: 'The answers are lost, and gateways answer the next attempts with 429, 401, 404 and 413.',
    rule: 'P27, section 6',
    steps: [
      open(0),
      network('answer-lost', 'gateway-429'),
      submit('order-1', { content: 'coffee' }),
      pass(2 * minute),
      network('answer-lost', 'gateway-401'),
      submit('order-2'),
      pass(2 * minute),
      network('answer-lost', 'gateway-404', 'gateway-404'),
      submit('order-3'),
      pass(2 * minute),
      network('answer-lost', 'gateway-413'),
      submit('order-4'),
      pass(2 * minute),
    ],
    ends: ['order-1', 'order-2', 'order-3', 'order-4'].map((intent) => ({ intent, state: 'succeeded', effects: 1 })),
    without: {
      name: 'what a gateway refuses counts as proof',
      edits: [
        {
          file: 'src/protocol/verdict.ts',
          find: 'proof: hasProof(heard, context.dialect),',
          replace: 'proof: true,',
        },
      ],
    },
  },
  {
    hole: 'H43',
    schedule: 'A socket swallows the request: nothing ever comes back, and aborting is not heard.',
    rule: 'P26',
    steps: [open(0), network('black-hole'), submit('order-1'), pass(minute)],
    ends: [{ intent: 'order-1', state: 'succeeded', effects: 1 }],
    without: {
      name: 'an attempt lasts as long as its fetch',
      edits: [
        {
          file: 'src/engine/http.ts',
          find: 'response = await Promise.race([sent, limit])',
          replace: 'response = await sent',
        },
      ],
    },
  },
  {
    hole: 'H47',
    schedule: 'Every attempt is refused at the connection, for certain, until none is left.',
    rule: 'P29',
    setting: { provesNonDelivery: true, attempts: 2 },
    steps: [open(0), network('refused', 'refused'), submit('order-1'), pass(5 * minute)],
    ends: [{ intent: 'order-1', state: 'blocked', because: 'attempts', effects: 0 }],
    without: {
      name: 'attempts never end',
      edits: [
        {
          file: 'src/protocol/guards.ts',
          find: 'record.spent < policy.maxAttempts,',
          replace: 'record.spent < policy.maxAttempts + 1,',
        },
      ],
    },
  },
  {
    hole: 'H48',
    schedule: 'The only attempt surely never arrived, and the user cancels where nothing can be voided.',
    rule: 'P19',
    setting: { dialect: 'ietf', provesNonDelivery: true },
    steps: [open(0), network('refused'), submit('order-1'), pass(100), person('cancel', 'order-1'), pass(minute)],
    ends: [{ intent: 'order-1', state: 'cancelled', because: 'by_app', effects: 0 }],
    without: {
      name: 'what never arrived leaves doubt',
      edits: [
        {
          file: 'src/protocol/transitions.ts',
          find: "cleared('never_delivered', ['spareAttemptOffline'])",
          replace: "cleared('never_delivered', ['keepDoubt', 'handedOver', 'spareAttemptOffline'])",
        },
      ],
    },
  },
  {
    hole: 'H49',
    schedule: 'A browser sends one attempt twice: a gateway refuses one copy, and the other one commits.',
    rule: 'P30, section 18',
    setting: { repeats: true },
    steps: [open(0), network('twice', 'gateway-404'), submit('order-1'), pass(minute)],
    ends: [{ intent: 'order-1', state: 'rejected', effects: 0 }],
    without: {
      name: 'one answer speaks for all copies',
      edits: [
        {
          file: 'src/protocol/guards.ts',
          find: "return state.name === 'sending' && (!state.attempt.exact || 'repeated' in event)",
          replace: "return state.name === 'sending' && 'repeated' in event",
        },
      ],
    },
  },
  {
    hole: 'H51',
    schedule: 'The session is over: the order is answered with a 303 to a sign-in page, which is a 200.',
    rule: 'section 6',
    steps: [open(0), network('login-page'), submit('order-1'), pass(minute)],
    ends: [{ intent: 'order-1', state: 'succeeded', effects: 1 }],
    without: {
      name: 'any 303 is followed to a success',
      edits: [
        {
          file: 'src/engine/http.ts',
          find: 'response.status === 303 && isProof',
          replace: 'response.status === 303',
        },
      ],
    },
  },
  {
    hole: 'H54',
    schedule: 'The first attempt commits unheard, the second one is refused at the connection; the user cancels.',
    rule: 'P19',
    setting: { provesNonDelivery: true },
    steps: [
      open(0),
      network('answer-lost', 'refused', 'refused', 'refused', 'refused', 'refused', 'refused'),
      submit('order-1'),
      pass(2 * second),
      person('cancel', 'order-1'),
      pass(2 * minute),
    ],
    ends: [{ intent: 'order-1', state: 'succeeded', effects: 1 }],
    without: {
      name: 'an attempt that never arrived clears the doubt of an earlier one',
      edits: [
        {
          file: 'src/protocol/updates.ts',
          find: '(mayHaveCopies(record, event) ? { doubt: firstHandOver(record) } : {}),',
          replace: '(mayHaveCopies(record, event) ? { doubt: firstHandOver(record) } : { doubt: null }),',
        },
      ],
    },
  },
  {
    hole: 'H59',
    schedule: 'The page is on another origin and may not read the marker: every answer looks foreign.',
    rule: 'P41',
    setting: { hidesHeaders: true },
    steps: [open(0), submit('order-1'), pass(minute)],
    ends: [{ intent: 'order-1', state: 'unknown', because: 'markers_unreadable', effects: 1 }],
    without: {
      name: 'answers without a readable marker are asked for for ever',
      edits: [
        {
          file: 'src/protocol/transitions.ts',
          find: "      ...unknown('markers_unreadable', 'P41, H59: never a silent loop', ['unmarkedAgain'], ['countUnmarked']),\n",
          replace: '',
        },
      ],
    },
  },
]
