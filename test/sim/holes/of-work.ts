/** Holes of accepted work: what a monitor says, what a void can take back, who still writes. */
import type { Hole } from './hole.ts'
import { minute, network, open, pass, person, second, server, submit, worker } from './script.ts'

export const ofWork: readonly Hole[] = [
  {
    hole: 'H13',
    schedule: 'Another service takes a payment and is not heard; the work is done again.',
    rule: 'P54, P65',
    steps: [open(0), server('accepts'), worker('loses-call'), submit('pay-blind-1'), pass(5 * minute)],
    ends: [{ intent: 'pay-blind-1', state: 'unknown', because: 'server_unknown', effects: 1 }],
    without: {
      name: 'a call that was not heard is made again',
      edits: [
        {
          file: 'src/server/tasks/call-row.ts',
          find: "    case 'neither':\n      return {",
          replace: "    case 'neither':\n      if (now > 0) return { kind: 'send', row: again }\n      return {",
        },
      ],
    },
  },
  {
    hole: 'H14',
    schedule: 'A worker is killed when another service has taken a payment, and the next one takes the work over.',
    rule: 'P65',
    steps: [open(0), server('accepts'), worker('dies-after-call'), submit('pay-1'), pass(5 * minute)],
    ends: [{ intent: 'pay-1', state: 'succeeded', effects: 1 }],
    without: {
      name: 'each execution calls under an id of its own',
      edits: [
        {
          file: 'src/server/tasks/call-row.ts',
          find: '    attempts: row.attempts + 1,\n    lastBegunAt: now,\n  }\n  switch',
          replace:
            '    attempts: row.attempts + 1,\n    lastBegunAt: now,\n    operationId: String(epoch),\n  }\n  switch',
        },
      ],
    },
  },
  {
    hole: 'H32',
    schedule: 'Accepted work fails and may be tried again; the same request would get the same 202 for ever.',
    rule: 'P64, P38',
    steps: [open(0), server('accepts'), worker('fails'), submit('order-1'), pass(5 * minute)],
    ends: [{ intent: 'order-1', state: 'succeeded', effects: 1 }],
    without: {
      name: 'the server waits for the client to try failed work again',
      edits: [
        {
          file: 'src/server/tasks/task-row.ts',
          find: "{ ...row, status: 'failed_retryable', dueAt, error } : null",
          replace: "{ ...row, status: 'failed_retryable', dueAt: null, error } : null",
        },
        {
          file: 'src/protocol/inquiry.ts',
          find: 'switch (document.status) {',
          replace:
            "if (document.status === 'failed_retryable') return nothing({ type: 'clientMayRetry', status, retryAfterMs: retryAfter })\n  switch (document.status) {",
        },
      ],
    },
  },
  {
    hole: 'H33',
    schedule: 'The 202 is lost, the user cancels when the work has begun, and the work then fails.',
    rule: 'P44, P58',
    steps: [
      open(0),
      server('accepts'),
      worker('dies-after-step'),
      worker('refuses'),
      network('answer-lost', 'request-lost'),
      submit('order-1'),
      pass(300),
      person('cancel', 'order-1'),
      pass(5 * minute),
    ],
    ends: [{ intent: 'order-1', state: 'rejected', effects: 0 }],
    without: {
      name: 'a void that finds work under way counts as success',
      edits: [
        {
          file: 'src/protocol/transitions.ts',
          find: "      to({ name: 'processing' }, 'P44, H33', [], ['dropAnswer', 'resetAsked', 'ask', 'releaseLaneIfSkipped']),",
          replace: "      to({ name: 'succeeded', by: 'answer' }, 'P44, H33', [], ['settle']),",
        },
      ],
    },
  },
  {
    hole: 'H34',
    schedule: 'A worker stands still with accepted work that a void takes back, and then goes on.',
    rule: 'P58',
    steps: [
      open(0),
      server('accepts'),
      worker('sleeps'),
      submit('order-1'),
      pass(5 * second),
      person('cancel', 'order-1'),
      pass(2 * minute),
    ],
    ends: [{ intent: 'order-1', state: 'cancelled', because: 'voided', effects: 0 }],
    without: {
      name: 'a worker that lost its work still writes',
      edits: [
        {
          file: 'src/server/tasks/task-row.ts',
          find: "return row.epoch === epoch && row.status === 'processing' && row.dueAt !== null\n",
          replace: 'return row.epoch >= epoch\n',
        },
        {
          file: 'src/server/tasks/held.ts',
          find: "if (gone === null && locks === 0 && leaseOver()) lose('The lease was over before it could be renewed.', trouble)",
          replace: '',
        },
      ],
    },
  },
]
