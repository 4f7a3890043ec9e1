/** Holes of order: an older write after a newer one, and lanes that nothing releases. */
import type { Hole } from './hole.ts'
import { minute, network, open, pass, submit } from './script.ts'

export const ofLanes: readonly Hole[] = [
  {
    hole: 'H28',
    schedule: 'The first version of a document is lost on its way and waits; the second one is put.',
    rule: 'P34',
    steps: [
      open(0),
      network('request-lost', 'request-lost', 'request-lost'),
      submit('doc-1'),
      pass(100),
      submit('doc-2', { content: 'coffee' }),
      pass(5 * minute),
    ],
    ends: [
      { intent: 'doc-1', state: 'succeeded', effects: 1 },
      { intent: 'doc-2', state: 'succeeded', effects: 1 },
    ],
    without: {
      name: 'nobody waits for an older write',
      edits: [
        {
          file: 'src/engine/runner.ts',
          find: 'laneFree: head === undefined || head.key === record.key || record.laneReleased,',
          replace: 'laneFree: true,',
        },
      ],
    },
  },
  {
    hole: 'H42',
    schedule: "A lane's head is refused; the lane stops, and a person lets it go on.",
    rule: 'P34',
    steps: [
      open(0),
      submit('till-1', { content: 'sold-out' }),
      submit('till-2'),
      pass(minute),
      { do: 'resume', tab: 0 },
      pass(minute),
    ],
    ends: [
      { intent: 'till-1', state: 'rejected', effects: 0 },
      { intent: 'till-2', state: 'succeeded', effects: 1 },
    ],
    without: {
      name: 'a stopped lane cannot be resumed',
      edits: [
        {
          file: 'src/protocol/transitions.ts',
          find: "laneResumed: [to('same', 'P34', [], ['releaseLane'])],",
          replace: 'laneResumed: [],',
        },
      ],
    },
  },
  {
    hole: 'H60',
    schedule: 'A change of a document is refused with 422, and the corrected one waits behind it.',
    rule: 'P34',
    steps: [open(0), submit('doc-1', { content: 'sold-out' }), pass(100), submit('doc-2'), pass(minute)],
    ends: [
      { intent: 'doc-1', state: 'rejected', effects: 0 },
      { intent: 'doc-2', state: 'succeeded', effects: 1 },
    ],
    without: {
      name: 'a refused write holds those after it',
      edits: [
        {
          file: 'src/protocol/record.ts',
          find: "return record.lane.kind === 'named' && record.state.name !== 'succeeded'",
          replace: "return record.state.name !== 'succeeded'",
        },
      ],
    },
  },
]
