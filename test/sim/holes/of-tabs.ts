/** Holes of storage and of many tabs: claims, leases, answers that come late. */
import type { Hole } from './hole.ts'
import { freeze, kill, minute, network, open, partition, pass, person, second, submit, thaw } from './script.ts'

export const ofTabs: readonly Hole[] = [
  {
    hole: 'H18',
    schedule: 'A write to the store is given up and lands late; the order is submitted again meanwhile.',
    rule: 'P18',
    steps: [
      open(0),
      pass(100),
      // Its write: the lookups before it are none.
      { do: 'store', tab: 0, fault: 'unsure-late', operation: 0 },
      submit('order-1'),
      pass(second),
      submit('order-1'),
      pass(minute),
    ],
    ends: [{ intent: 'order-1', state: 'succeeded', effects: 1 }],
    without: {
      name: 'a name may have several current records',
      edits: [
        {
          file: 'src/stores/memory.ts',
          find: '        if (obstructed !== undefined) return obstructed\n        if (current !== undefined) replace',
          replace:
            "        if (obstructed !== undefined && 'taken' in obstructed && obstructed.taken === 'key') return obstructed\n        if (current !== undefined) replace",
        },
      ],
    },
  },
  {
    hole: 'H19',
    schedule: 'The record of an order whose answer was lost is damaged, and the order is submitted again.',
    rule: 'P23',
    steps: [
      open(0),
      network('answer-lost'),
      submit('order-1'),
      pass(100),
      kill(0),
      { do: 'damage', intent: 'order-1' },
      open(1),
      pass(second),
      submit('order-1', { tab: 1 }),
      pass(minute),
    ],
    ends: [{ intent: 'order-1', state: 'sending', effects: 1 }],
    without: {
      name: 'a damaged record leaves its name free',
      edits: [
        {
          file: 'src/engine/submit.ts',
          find: 'const found = row === undefined ? undefined : readable(row)\n',
          replace: 'const found = row === undefined || isSetAside(ledger.read(row)) ? undefined : readable(row)\n',
        },
        {
          file: 'src/engine/submit.ts',
          find: 'found === undefined ? undefined : { key: found.record.key, revision: found.row.revision }',
          replace: 'row && { key: row.key, revision: row.revision }',
        },
      ],
    },
  },
  {
    hole: 'H20',
    schedule: 'One tab acknowledges a success, and another one submits the same order.',
    rule: 'P8',
    steps: [
      open(0),
      open(1),
      submit('order-1'),
      pass(second),
      person('acknowledge', 'order-1'),
      pass(second),
      submit('order-1', { tab: 1 }),
      pass(minute),
    ],
    ends: [{ intent: 'order-1', state: 'succeeded', effects: 1 }],
    without: {
      name: 'what was acknowledged is forgotten',
      edits: [
        {
          file: 'src/protocol/transitions.ts',
          find: "acknowledged: [to('same', 'P22', [], ['acknowledge'])],",
          replace: "acknowledged: [to('same', 'P22', [], ['acknowledge'], ['remove'])],",
        },
      ],
    },
  },
  {
    hole: 'H38',
    schedule:
      'A tab freezes with an answer in hand; the intent is settled, forgotten and placed anew by another one; the first wakes.',
    rule: 'P47',
    setting: { locks: false },
    steps: [
      open(0),
      open(1),
      submit('order-1'),
      pass(10),
      freeze(0),
      pass(minute),
      person('forget', 'order-1', 1),
      pass(second),
      partition,
      submit('order-1', { tab: 1 }),
      pass(second),
      thaw(0),
      pass(second),
    ],
    ends: [{ intent: 'order-1', state: 'succeeded', effects: 2 }],
    without: {
      name: "a late answer settles whatever has the intent's name now",
      edits: [
        {
          file: 'src/engine/runner.ts',
          find: 'const row = await store.byKey(keyOf(old.row))\n',
          replace: 'const row = await store.current(options.name, old.row.scope, old.row.id)\n',
        },
      ],
    },
  },
  {
    hole: 'H39',
    schedule: 'A tab freezes with the answer in hand; another one takes over and gives up; the first wakes.',
    rule: 'P48',
    setting: { attempts: 2 },
    steps: [
      open(0),
      open(1),
      submit('order-1'),
      pass(10),
      freeze(0),
      pass(100),
      partition,
      pass(2 * minute),
      thaw(0),
      pass(second),
    ],
    ends: [{ intent: 'order-1', state: 'succeeded', effects: 1 }],
    without: {
      name: 'a late proof is thrown away',
      edits: [
        {
          file: 'src/engine/runner.ts',
          find: 'const counts = isSame && isProof(event)',
          replace: 'const counts = isSame && isProof(event) && false',
        },
      ],
    },
  },
]
