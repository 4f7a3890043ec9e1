/** Faults in what people do and are told, in names, lists and set-aside records. */
import { fault, type Mutant } from './mutant.ts'

const transitions = 'src/protocol/transitions.ts'
const submission = 'src/protocol/submission.ts'

export const ofPeople: readonly Mutant[] = [
  fault(
    'an outcome is announced before it is stored',
    'P17, P22',
    'src/engine/runner.ts',
    '          const stored = await persist(loaded, record, blobs, {',
    '          announcer.announce(loaded.record.state.name, { row: loaded.row, record }, event.type, body)\n          const stored = await persist(loaded, record, blobs, {',
  ),
  fault(
    'cancelling in doubt needs no void',
    'P44, F19',
    transitions,
    "    to({ name: 'cancelled', because: 'by_app' }, 'P19', ['!inDoubt'], ['settle']),",
    "    to({ name: 'cancelled', because: 'by_app' }, 'P19', [], ['settle']),",
  ),
  fault(
    '"it did not happen" needs no void',
    'P45, H31',
    transitions,
    "    to({ name: 'cancelled', because: 'by_app' }, 'P45', ['!inDoubt'], ['settle']),",
    "    to({ name: 'cancelled', because: 'by_app' }, 'P45', [], ['settle']),",
  ),
  fault(
    'abandoning frees the name without force',
    'P45, H30',
    transitions,
    "    to({ name: 'abandoned', mayStillHappen: true, freed: true }, 'P45, H30: forced', ['forced'], ['settle']),\n    to({ name: 'abandoned', mayStillHappen: true, freed: false }, 'P45', [], ['settle']),\n  ],\n",
    "    to({ name: 'abandoned', mayStillHappen: true, freed: true }, 'P45, H30: forced', [], ['settle']),\n  ],\n",
  ),
  fault(
    'work that is being done counts as voided',
    'P44, H33',
    transitions,
    "      to({ name: 'processing' }, 'P44, H33', [], ['dropAnswer', 'resetAsked', 'ask', 'releaseLaneIfSkipped']),",
    "      to({ name: 'cancelled', because: 'voided' }, 'P44, H33', [], ['dropAnswer', 'settle']),",
  ),
  fault(
    'what was not found is cancelled',
    'P43, H36',
    transitions,
    "      ['inDoubt', 'keyExpired', 'afterTransit'],",
    "      ['inDoubt'],",
  ),
  fault('another content under the same name joins', 'P7, H56', submission, "  if (!same) return 'mismatch'\n", ''),
  fault(
    'another content gets a new key, whatever became of the first',
    'P7',
    submission,
    'const mendable: ReadonlySet<StateName> = new Set<StateName>([',
    "const mendable: ReadonlySet<StateName> = new Set<StateName>([\n  'unknown',\n  'succeeded',\n  'waiting',",
  ),
  fault(
    'what is in doubt can be forgotten',
    'P8',
    submission,
    "  if (keyOrigin === 'derived' || holdsLane(record)) return false",
    "  if (keyOrigin !== 'derived') return true\n  if (keyOrigin === 'derived' || holdsLane(record)) return false",
  ),
  fault(
    'a second insert replaces the first',
    'P6',
    'src/stores/rows.ts',
    "  if (current !== undefined && !replaced) return { inserted: false, taken: 'id', row: current }\n",
    '  void replaced\n',
  ),
  fault('a list shows everybody’s intents', 'P50, H45', 'src/engine/intents.ts', '          scope: current,\n', ''),
  fault(
    'listeners hear of everybody’s intents',
    'P50, H45',
    'src/engine/announcer.ts',
    '      if (loaded.record.scope === scope()) tell(note)\n    },\n    relay',
    '      tell(note)\n    },\n    relay',
  ),
  fault(
    'a record of a newer version is worked on',
    'P23, H19',
    'src/protocol/codec.ts',
    "  if (format > recordFormat) return { ok: false, reason: 'newer' }\n",
    '',
  ),
  fault(
    'a proof that comes late is thrown away',
    'P48, H39',
    'src/engine/runner.ts',
    '      const counts = isSame && isProof(event)',
    '      const counts = false && isSame && isProof(event)',
  ),
  {
    name: 'new credentials wake nobody',
    rule: 'P33, H44',
    edits: [
      {
        file: 'src/protocol/updates.ts',
        find: '  slowPoll: (_record, _event, { times, policy }) => ({ dueAt: times.now + policy.slowPollMs }),',
        replace: '  slowPoll: () => ({ dueAt: null }),',
      },
      {
        file: 'src/engine/engine.ts',
        find: '      wakeOpen(parked, wasHeldBack)\n',
        replace: '',
      },
    ],
  },
]
