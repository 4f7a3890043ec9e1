/** Holes of who is signed in: whose intent, whose credentials. */
import type { Hole } from './hole.ts'
import { kill, minute, network, open, pass, second, signIn, submit } from './script.ts'

export const ofIdentity: readonly Hole[] = [
  {
    hole: 'H5',
    schedule: "Bob signs in through another tab with a shared cookie, and Alice's tab retries her order.",
    rule: 'P3, Idempotency-Scope',
    setting: { identity: 'cookie' },
    steps: [
      open(0),
      open(1),
      network('request-lost'),
      submit('order-1'),
      pass(100),
      { do: 'sign-in-unseen', user: 'bob', tab: 1 },
      pass(minute),
    ],
    ends: [{ intent: 'order-1', state: 'succeeded', effects: 1 }],
    without: {
      name: 'the server ignores the tag of the account',
      edits: [
        {
          file: 'src/server/decide.ts',
          find: "if (scope === 'other') return",
          replace: "if (scope === 'unchecked') return",
        },
      ],
    },
  },
  {
    hole: 'H6',
    schedule: "Alice's token is awaited for her order while Bob signs in, and the app gives his.",
    rule: 'P3',
    steps: [open(0), open(1), submit('order-1'), pass(2), { do: 'sign-in-unseen', user: 'bob', tab: 1 }, pass(minute)],
    ends: [{ intent: 'order-1', state: 'succeeded', effects: 1 }],
    without: {
      name: 'nobody looks whose the credentials are',
      edits: [
        {
          file: 'src/engine/credentials.ts',
          find: "if (credentials.scope !== record.scope) return { granted: false, event: { type: 'scopeDiffers' } }",
          replace: '',
        },
        {
          file: 'src/engine/credentials.ts',
          find: 'const stillValid = (): boolean => generation === asked && sameScope()',
          replace: 'const stillValid = (): boolean => generation === asked',
        },
      ],
    },
  },
  {
    hole: 'H27',
    schedule: 'auth() gives a header that chooses the account, and the account is switched between two attempts.',
    rule: 'P9',
    steps: [
      open(0),
      { do: 'choose-account', account: 'private' },
      network('answer-lost'),
      submit('order-1'),
      pass(100),
      { do: 'choose-account', account: 'business' },
      pass(2 * minute),
      { do: 'choose-account', account: null },
      pass(2 * minute),
    ],
    ends: [{ intent: 'order-1', state: 'succeeded', effects: 1 }],
    without: {
      name: 'auth() may add any header',
      edits: [
        {
          file: 'src/engine/credentials.ts',
          find: 'if (options.credentialHeaders.has(name)) return',
          replace: 'if (name.length > 0) return',
        },
      ],
    },
  },
  {
    hole: 'H44',
    schedule: 'The token expires, an order is blocked on it, and the token is renewed.',
    rule: 'P33',
    steps: [
      open(0),
      { do: 'expire-token', user: 'alice' },
      submit('order-1'),
      pass(second),
      { do: 'renew-token', user: 'alice' },
      pass(second),
    ],
    ends: [{ intent: 'order-1', state: 'succeeded', effects: 1 }],
    without: {
      name: 'nothing wakes what waits for credentials',
      edits: [
        {
          file: 'src/engine/engine.ts',
          find: '      wakeOpen(parked, wasHeldBack)\n',
          replace: '',
        },
        {
          file: 'src/protocol/updates.ts',
          find: 'slowPoll: (_record, _event, { times, policy }) => ({ dueAt: times.now + policy.slowPollMs }),',
          replace: 'slowPoll: () => ({ dueAt: null }),',
        },
      ],
    },
  },
  {
    hole: 'H45',
    schedule: "Bob signs in on Alice's device and looks at the list while her order still waits.",
    rule: 'P50',
    steps: [
      open(0),
      network('request-lost'),
      submit('order-1'),
      pass(second),
      signIn('bob'),
      { do: 'list', tab: 0 },
      pass(second),
    ],
    ends: [{ intent: 'order-1', state: 'succeeded', effects: 1 }],
    without: {
      name: 'the list shows the intents of others',
      edits: [
        {
          file: 'src/engine/intents.ts',
          find: '          scope: current,\n          afterSeq,',
          replace: '          afterSeq,',
        },
      ],
    },
  },
  {
    hole: 'H52',
    schedule: 'Alice clicks, the store takes its time, and Bob signs in before her order is written down.',
    rule: 'P3',
    steps: [
      open(0),
      pass(100),
      { do: 'freeze-at', tab: 0, operation: 1 },
      submit('order-1'),
      signIn('bob'),
      { do: 'thaw', tab: 0 },
      pass(minute),
    ],
    ends: [{ intent: 'order-1', user: 'alice', state: 'succeeded', effects: 1 }],
    without: {
      name: 'whose intent it is, is asked when it is stored',
      edits: [
        {
          file: 'src/engine/submit.ts',
          find: '        client: options.name,\n        scope,\n        call,',
          replace: '        client: options.name,\n        scope: options.scope() ?? scope,\n        call,',
        },
      ],
    },
  },
  {
    hole: 'H55',
    schedule: 'The first attempt is refused for want of credentials, and Alice signs in after the retention is over.',
    rule: 'P19',
    steps: [
      open(0),
      { do: 'expire-token', user: 'alice' },
      submit('order-1'),
      pass(40 * minute),
      { do: 'renew-token', user: 'alice' },
      pass(minute),
    ],
    ends: [{ intent: 'order-1', state: 'succeeded', effects: 1 }],
    without: {
      name: 'the window counts from a refused attempt',
      edits: [
        {
          file: 'src/protocol/transitions.ts',
          find: "'F14',\n        [],\n        ['handedOver', 'keepDoubtOfCopies',",
          replace: "'F14',\n        [],\n        ['handedOver', 'keepDoubt',",
        },
      ],
    },
  },
  {
    hole: 'H62',
    schedule: 'A tab dies with an order that goes to another origin with its cookies, and the next one resumes it.',
    rule: 'P9',
    setting: { identity: 'cookie' },
    steps: [open(0), network('request-lost'), submit('order-1'), pass(second), kill(0), open(1), pass(minute)],
    ends: [{ intent: 'order-1', state: 'succeeded', effects: 1 }],
    without: {
      name: 'a resumed request forgets how its credentials travel',
      edits: [
        {
          file: 'src/engine/wire.ts',
          find: '      credentials: request.credentials,\n',
          replace: "      credentials: 'same-origin',\n",
        },
      ],
    },
  },
]
