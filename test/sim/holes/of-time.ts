/** Holes of age and retention: what the server may have forgotten by now. */
import { type Step, times } from '../schedule.ts'
import type { Hole } from './hole.ts'
import {
  day,
  heal,
  jump,
  kill,
  minute,
  network,
  open,
  partition,
  pass,
  person,
  second,
  submit,
  thaw,
} from './script.ts'

/** Longer than a key is remembered, its row included. */
const forgotten = times.retention + times.grace + minute
/** So long after the first send, the window is almost over. */
const lastMoment = times.retention - times.transit - times.attemptTimeout - 5 * second

/** The answer is lost, then the storage; when the server has forgotten the key, the same is submitted again. */
const submittedAgainMuchLater: readonly Step[] = [
  open(0),
  network('answer-lost'),
  submit('order-1'),
  pass(100),
  { do: 'lose-storage' },
  pass(forgotten),
  open(1),
  submit('order-1', { tab: 1 }),
  pass(minute),
]

export const ofTime: readonly Hole[] = [
  {
    hole: 'H8',
    schedule: 'A derived key was used, the storage is lost, and the order is submitted again after the retention.',
    rule: 'P11',
    setting: { keys: 'derived' },
    steps: submittedAgainMuchLater,
    ends: [{ intent: 'order-1', state: 'unknown', because: 'window_over', effects: 1 }],
    without: {
      name: 'a recovered key begins a new life',
      edits: [
        {
          file: 'src/engine/new-record.ts',
          find: 'doubt: since === null ? null : { at: Math.min(since, now), serverAt: since },',
          replace: 'doubt: null,',
        },
      ],
    },
  },
  {
    hole: 'H9',
    schedule:
      'A tab marks its first attempt and freezes before it sends; another one takes over; the first wakes after the retention.',
    rule: 'P35, P47',
    setting: { dated: false },
    steps: [
      open(0),
      open(1),
      pass(100),
      // Its mark is the eleventh operation on the store from here.
      { do: 'freeze-at', tab: 0, operation: 11, when: 'after' },
      submit('order-1'),
      pass(2 * minute),
      pass(forgotten),
      thaw(0),
      pass(minute),
    ],
    ends: [{ intent: 'order-1', state: 'succeeded', effects: 1 }],
    without: {
      name: 'who marked an attempt sends it, however late',
      edits: [
        {
          file: 'src/engine/runner.ts',
          find: "if (isOverslept(loaded, prepared, takesMs)) return refused('lease')",
          replace: '',
        },
      ],
    },
  },
  {
    hole: 'H10',
    schedule:
      'The last attempt leaves when the retention is almost over and waits in a proxy until the key is forgotten.',
    rule: 'P35, P57',
    setting: { dated: false },
    steps: [
      open(0),
      network('answer-lost'),
      submit('order-1'),
      pass(100),
      kill(0),
      pass(times.retention - 40 * second),
      network('request-late'),
      open(1),
      pass(2 * second),
      partition,
      pass(5 * minute),
    ],
    ends: [{ intent: 'order-1', state: 'unknown', because: 'window_over', effects: 1 }],
    without: {
      name: 'no time is left for what is on its way',
      edits: [
        {
          file: 'src/protocol/window.ts',
          find: 'policy.retentionMs - policy.attemptTimeoutMs - policy.transitMs',
          replace: 'policy.retentionMs',
        },
        {
          file: 'src/server/decide.ts',
          find: 'age.ageMs + transitMs >= retentionMs',
          replace: 'age.ageMs >= retentionMs + 0 * transitMs',
        },
        {
          file: 'src/server/memory.ts',
          find: 'reapAt: expiresAt + graceMs',
          replace: 'reapAt: expiresAt + 0 * graceMs',
        },
      ],
    },
  },
  {
    hole: 'H12',
    schedule: 'A late copy arrives when its key has expired and its answer is still there.',
    rule: 'P57',
    setting: { dialect: 'ietf' },
    steps: [
      open(0),
      network('answer-lost'),
      submit('order-1'),
      pass(100),
      kill(0),
      pass(lastMoment),
      network('request-late'),
      open(1),
      pass(2 * minute),
    ],
    ends: [{ intent: 'order-1', state: 'succeeded', effects: 1 }],
    without: {
      name: 'an expired row is taken over',
      edits: [
        {
          file: 'src/server/memory.ts',
          find: "        if (mine.has(name)) return { seen: 'taken' }\n",
          replace:
            "        if (mine.has(name)) return { seen: 'taken' }\n        if ((committed.get(name)?.row.expiresAt ?? now()) < now()) committed.delete(name)\n",
        },
      ],
    },
  },
  {
    hole: 'H21',
    schedule:
      'A tab freezes in its submit; another one submits the same order, which succeeds and is forgotten; the first wakes.',
    rule: 'P8',
    steps: [
      open(0),
      open(1),
      pass(100),
      // Before its write.
      { do: 'freeze-at', tab: 1, operation: 3 },
      submit('order-1', { tab: 1 }),
      submit('order-1'),
      pass(second),
      kill(0),
      pass(8 * day),
      open(0),
      pass(second),
      thaw(1),
      pass(minute),
    ],
    ends: [{ intent: 'order-1', state: null, effects: 1 }],
    without: {
      name: 'a submit may be held up for any time',
      edits: [
        {
          file: 'src/engine/submit.ts',
          find: 'if (waited <= options.rememberMs) return',
          replace: 'if (waited >= 0) return',
        },
      ],
    },
  },
  {
    hole: 'H29',
    schedule: 'The user gave up long ago when the network comes back.',
    rule: 'P36',
    steps: [open(0), partition, submit('order-1', { sendBeforeMs: minute }), pass(20 * minute), heal, pass(5 * minute)],
    ends: [{ intent: 'order-1', state: 'cancelled', because: 'send_before_passed', effects: 0 }],
    without: {
      name: 'no send is too late for the app',
      edits: [
        {
          file: 'src/protocol/guards.ts',
          find: 'record.sendBefore !== null && times.now >= record.sendBefore,',
          replace: 'record.sendBefore !== null && times.now < 0,',
        },
        {
          file: 'src/engine/runner.ts',
          find: "if (record.sendBefore !== null && times.now >= record.sendBefore) return refused('send_before')",
          replace: '',
        },
      ],
    },
  },
  {
    hole: 'H40',
    schedule: "The key is forgotten by the server, and the device's clock is set back meanwhile: the age looks small.",
    rule: 'Idempotency-Since, P35',
    steps: [
      open(0),
      submit('order-0'),
      pass(second),
      network('answer-lost'),
      submit('order-1', { content: 'coffee' }),
      pass(100),
      kill(0),
      pass(forgotten),
      jump(-(forgotten - minute)),
      open(1),
      pass(minute),
    ],
    ends: [
      { intent: 'order-0', state: 'succeeded', effects: 1 },
      { intent: 'order-1', state: 'unknown', because: 'expired_in_doubt', effects: 1 },
    ],
    without: {
      name: "the server believes the device's age alone",
      edits: [
        {
          file: 'src/server/decide.ts',
          find: 'age.since !== null && now - age.since >= retentionMs',
          replace: 'age.since !== null && now < 0',
        },
      ],
    },
  },
  {
    hole: 'H50',
    schedule: 'The app keeps a key itself, the storage is lost, and the order is submitted again after the retention.',
    rule: 'P11',
    setting: { keys: 'given' },
    steps: submittedAgainMuchLater,
    ends: [{ intent: 'order-1', state: 'unknown', because: 'window_over', effects: 1 }],
    without: {
      name: 'the time from which a given key counts is ignored',
      edits: [
        {
          file: 'src/engine/submit.ts',
          find: "return { key: choice.value, keyOrigin: 'given', since }",
          replace: "return { key: choice.value, keyOrigin: 'given', since: null }",
        },
      ],
    },
  },
  {
    hole: 'H53',
    schedule: "The device's clock jumps four years ahead and back while orders wait.",
    rule: 'P35',
    steps: [
      open(0),
      jump(4 * 365 * day),
      network('answer-lost'),
      submit('order-1'),
      pass(100),
      network('gateway-429'),
      submit('order-2', { content: 'coffee' }),
      pass(100),
      jump(-4 * 365 * day),
      pass(2 * minute),
      submit('order-3', { content: 'coffee' }),
      pass(2 * minute),
    ],
    ends: [
      { intent: 'order-1', state: 'succeeded', effects: 1 },
      { intent: 'order-2', state: 'succeeded', effects: 1 },
      { intent: 'order-3', state: 'succeeded', effects: 1 },
    ],
    without: {
      name: 'due times of a wrong clock are kept',
      edits: [
        {
          file: 'src/engine/recovery.ts',
          find: "await runner.step(found, { type: 'clockSteppedBack' })",
          replace: 'await Promise.resolve()',
        },
      ],
    },
  },
  {
    hole: 'H57',
    schedule: 'A look-up says expired while a copy of the request is still on its way, inside its own margin.',
    rule: 'P43',
    setting: { reconcile: true },
    steps: [
      open(0),
      // So that the server's clock is known: without it, nobody would believe that the transit has passed.
      submit('order-2'),
      pass(100),
      network('request-lost'),
      submit('order-1'),
      pass(100),
      kill(0),
      pass(lastMoment),
      network('request-late', 'request-lost', 'request-lost', 'request-lost'),
      open(1),
      pass(25 * second),
      network(),
      person('check', 'order-1', 1),
      pass(minute),
    ],
    ends: [
      { intent: 'order-2', state: 'succeeded', effects: 1 },
      { intent: 'order-1', state: 'unknown', because: 'expired_in_doubt', effects: 1 },
    ],
    without: {
      name: 'absent is believed while a copy may be on its way',
      edits: [
        {
          file: 'src/protocol/guards.ts',
          find: 'return passedMs > policy.transitMs + policy.attemptTimeoutMs',
          replace: 'return passedMs > -policy.transitMs',
        },
      ],
    },
  },
]
