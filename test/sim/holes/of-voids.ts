/** Holes of giving up: cancelled, abandoned, looked for and not found. */
import { times } from '../schedule.ts'
import type { Hole } from './hole.ts'
import { kill, minute, network, open, pass, person, second, server, submit } from './script.ts'

export const ofVoids: readonly Hole[] = [
  {
    hole: 'H1',
    schedule: 'The answer is lost, the key is forgotten, and only then the user cancels.',
    rule: 'P57, P44',
    steps: [
      open(0),
      network('answer-lost'),
      submit('order-1'),
      pass(100),
      kill(0),
      pass(times.retention + times.grace + minute),
      open(1),
      pass(second),
      person('cancel', 'order-1', 1),
      pass(minute),
    ],
    ends: [{ intent: 'order-1', state: 'unknown', because: 'window_over', effects: 1 }],
    without: {
      name: 'a key that may be forgotten can be voided',
      edits: [
        {
          file: 'src/protocol/transitions.ts',
          find: "to({ name: 'cancelling', purpose: 'cancel' }, 'P44', ['voids', 'windowOpen'], ",
          replace: "to({ name: 'cancelling', purpose: 'cancel' }, 'P44', ['voids'], ",
        },
        {
          file: 'src/protocol/transitions.ts',
          find: "      ...endOfVoid(['!windowOpen'], 'void_window_over'),\n",
          replace: '',
        },
        {
          file: 'src/server/decide.ts',
          find: "isTooOld(view, store.now) ? { kind: 'expired' } : { kind: 'void',",
          replace: "store.now === 0 ? { kind: 'expired' } : { kind: 'void',",
        },
      ],
    },
  },
  {
    hole: 'H30',
    schedule: 'An order is abandoned and placed again while its first copy still sits in a proxy.',
    rule: 'P45',
    steps: [
      open(0),
      network('request-late'),
      submit('order-1'),
      pass(400),
      person('abandon', 'order-1'),
      pass(second),
      submit('order-1', { again: true }),
      pass(2 * minute),
    ],
    ends: [{ intent: 'order-1', state: 'succeeded', effects: 1 }],
    without: {
      name: 'what may still happen is given up without a void',
      edits: [
        {
          file: 'src/protocol/transitions.ts',
          find: "'P45: nothing can have happened', ['!inDoubt'],",
          replace: "'P45: nothing can have happened', [],",
        },
      ],
    },
  },
  {
    hole: 'H31',
    schedule: 'A person finds nothing and says that it did not happen, and a late copy arrives.',
    rule: 'P45',
    steps: [
      open(0),
      network('request-late'),
      submit('order-1'),
      pass(400),
      person('resolve', 'order-1'),
      pass(2 * minute),
    ],
    ends: [{ intent: 'order-1', state: 'cancelled', because: 'voided', effects: 0 }],
    without: {
      name: 'that it did not happen is believed without a void',
      edits: [
        {
          file: 'src/protocol/transitions.ts',
          find: "to({ name: 'cancelled', because: 'by_app' }, 'P45', ['!inDoubt'], ['settle']),",
          replace: "to({ name: 'cancelled', because: 'by_app' }, 'P45', [], ['settle']),",
        },
      ],
    },
  },
  {
    hole: 'H35',
    schedule: 'The user cancels, the void is lost, the tab dies, and another tab takes the intent up.',
    rule: 'P44',
    steps: [
      open(0),
      open(1),
      network('request-lost', 'request-lost'),
      submit('order-1'),
      pass(400),
      person('cancel', 'order-1'),
      pass(100),
      kill(0),
      pass(minute),
    ],
    ends: [{ intent: 'order-1', state: 'cancelled', because: 'voided', effects: 0 }],
    without: {
      name: 'that somebody cancels is not stored',
      edits: [
        {
          file: 'src/protocol/transitions.ts',
          find: "to({ name: 'cancelling', purpose: 'cancel' }, 'P44', ['voids', 'windowOpen'], ['dueNow', 'resetAsked']),",
          replace: "to('same', 'P44', ['voids', 'windowOpen'], ['dueNow', 'resetAsked']),",
        },
      ],
    },
  },
  {
    hole: 'H36',
    schedule: 'A look-up finds nothing, and the app neither, while the first transaction still runs.',
    rule: 'P43',
    setting: { attempts: 1, reconcile: true },
    steps: [
      open(0),
      network('proxy-504'),
      server('slow'),
      submit('order-1'),
      pass(5 * second),
      person('check', 'order-1'),
      pass(minute),
    ],
    ends: [{ intent: 'order-1', state: 'succeeded', effects: 1 }],
    without: {
      name: 'not being found counts as not having happened',
      edits: [
        {
          file: 'src/protocol/transitions.ts',
          find: "['inDoubt', 'keyExpired', 'afterTransit'],",
          replace: "['inDoubt'],",
        },
      ],
    },
  },
]
