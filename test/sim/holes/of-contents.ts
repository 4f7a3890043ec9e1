/** Holes of what is compared: fingerprints, payloads, versions of one thing. */
import type { Hole } from './hole.ts'
import { minute, network, open, pass, person, second, submit } from './script.ts'

export const ofContents: readonly Hole[] = [
  {
    hole: 'H22',
    schedule:
      'The answer is lost, the server is released with other rules of its fingerprint, and the order is retried.',
    rule: 'P16, section 6',
    steps: [open(0), network('answer-lost'), submit('order-1'), pass(100), { do: 'deploy' }, pass(minute)],
    ends: [{ intent: 'order-1', state: 'succeeded', effects: 1 }],
    without: {
      name: "fingerprints are compared by today's rules, and a conflict ends doubt",
      edits: [
        {
          file: 'src/server/decide.ts',
          find: 'if (!sameFingerprint(row.fingerprint, request)) return',
          replace: "if (!sameFingerprint({ ...row.fingerprint, rules: { version: 'next' } }, request)) return",
        },
        {
          file: 'src/protocol/transitions.ts',
          find: "      ...unknown('conflict_in_doubt', 'section 6, H22', ['inDoubt']),\n",
          replace: '',
        },
      ],
    },
  },
  {
    hole: 'H23',
    schedule: 'Two amounts differ in a digit that a double cannot hold.',
    rule: 'P14',
    steps: [
      open(0),
      submit('order-1', { amount: '9007199254740992' }),
      pass(second),
      submit('order-2', { amount: '9007199254740993' }),
      pass(minute),
    ],
    ends: [{ intent: 'order-1', state: 'succeeded', effects: 1 }],
    without: {
      name: 'numbers are rounded to what a double holds',
      edits: [
        {
          file: 'src/protocol/json.ts',
          find: 'if (!Number.isFinite(value) || compareNumber(text, String(value)) !== 0) return INEXACT',
          replace: 'if (!Number.isFinite(value) || compareNumber(text, text) !== 0) return INEXACT',
        },
      ],
    },
  },
  {
    hole: 'H37',
    schedule: 'A derived key was used, the storage is lost, and the same name is submitted with another content.',
    rule: 'requestDigest, section 16',
    setting: { keys: 'derived' },
    steps: [
      open(0),
      network('answer-lost'),
      submit('order-1'),
      pass(100),
      { do: 'lose-storage' },
      open(1),
      submit('order-1', { tab: 1, content: 'coffee' }),
      pass(second),
      person('check', 'order-1', 1),
      pass(minute),
    ],
    ends: [{ intent: 'order-1', state: 'unknown', because: 'conflict_in_doubt', effects: 1 }],
    without: {
      name: 'the answer to another payload is taken',
      edits: [
        {
          file: 'src/protocol/inquiry.ts',
          find: 'document.requestDigest !== undefined && document.requestDigest !== context.bodyDigest',
          replace: "document.requestDigest === ''",
        },
      ],
    },
  },
  {
    hole: 'H56',
    schedule: 'The first version of a thing succeeded, and the second one is submitted under the same name.',
    rule: 'P7',
    steps: [open(0), submit('order-1'), pass(second), submit('order-1', { content: 'coffee' }), pass(minute)],
    ends: [{ intent: 'order-1', state: 'succeeded', effects: 1 }],
    without: {
      name: 'another content joins what succeeded',
      edits: [
        {
          file: 'src/protocol/submission.ts',
          find: "if (!same) return 'mismatch'",
          replace: "if (!same && state.name !== 'succeeded') return 'mismatch'",
        },
      ],
    },
  },
  {
    hole: 'H61',
    schedule: 'A plain 422, which nobody remembers, answers an order under a derived key.',
    rule: 'section 6',
    setting: { keys: 'derived' },
    steps: [open(0), submit('order-1', { content: 'nonsense' }), pass(10 * minute)],
    ends: [{ intent: 'order-1', state: 'rejected', effects: 0 }],
    without: {
      name: 'a refusal without proof is only ever tried again',
      edits: [
        {
          file: 'src/protocol/transitions.ts',
          find: "        ['!knownDone', 'voids', 'windowOpen'],\n        ['keepAnswer',",
          replace: "        ['!knownDone', 'knownDone'],\n        ['keepAnswer',",
        },
      ],
    },
  },
]
