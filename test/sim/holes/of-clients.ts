/** Holes of what a client takes for an intent, and of servers that do not de-duplicate. */
import type { Hole } from './hole.ts'
import { kill, minute, network, open, pass, second, submit } from './script.ts'

export const ofClients: readonly Hole[] = [
  {
    hole: 'H2',
    schedule: 'A password is posted through the wrapped fetch: it passes through, and nothing of it is stored.',
    rule: 'P2, P51',
    steps: [
      open(0),
      { do: 'send-unnamed', tab: 0, what: 'password' },
      pass(second),
      { do: 'sign-in', user: 'bob' },
      { do: 'list', tab: 0 },
      pass(second),
    ],
    ends: [],
    without: {
      name: 'what nobody named is stored under its address',
      edits: [
        {
          file: 'src/fetch.ts',
          find: 'const name = intent ?? headerName ?? nameFor(request) ?? givenKey(key) ?? headerKey\n',
          replace:
            'const name = intent ?? headerName ?? nameFor(request) ?? givenKey(key) ?? headerKey ?? request.url\n',
        },
      ],
    },
  },
  {
    hole: 'H3',
    schedule: 'Another library sends an order without a name, hears nothing, and sends it again by its own loop.',
    rule: 'P2',
    steps: [
      open(0),
      network('answer-lost'),
      { do: 'send-unnamed', tab: 0, what: 'order' },
      pass(second),
      { do: 'send-unnamed', tab: 0, what: 'order' },
      pass(second),
    ],
    ends: [],
    without: {
      name: 'what nobody named gets a fresh name at each send',
      edits: [
        {
          file: 'src/fetch.ts',
          find: 'const name = intent ?? headerName ?? nameFor(request) ?? givenKey(key) ?? headerKey\n',
          replace:
            'const name = intent ?? headerName ?? nameFor(request) ?? givenKey(key) ?? headerKey ?? String(unnamed++)\n',
        },
        {
          file: 'src/fetch.ts',
          find: 'const readOnly: ReadonlySet<string> =',
          replace: 'let unnamed = 0\nconst readOnly: ReadonlySet<string> =',
        },
      ],
    },
  },
  {
    hole: 'H4',
    schedule: 'The server knows no keys: it takes the order, and its answer is lost.',
    rule: 'P1, F24',
    setting: { dialect: 'none' },
    steps: [open(0), network('answer-lost'), submit('order-1'), pass(minute)],
    ends: [{ intent: 'order-1', state: 'unknown', because: 'server_does_not_deduplicate', effects: 1 }],
    without: {
      name: 'de-duplication is assumed, never declared',
      edits: [
        {
          file: 'src/engine/policies.ts',
          find: 'const deduplicates = dialect.deduplicates && dialect.methods.includes(request.method)',
          replace: 'const deduplicates = true',
        },
        {
          file: 'src/engine/policies.ts',
          find: 'settings?.retentionMs ?? dialect.retentionMs\n',
          replace: 'settings?.retentionMs ?? dialect.retentionMs ?? 86_400_000\n',
        },
      ],
    },
  },
  {
    hole: 'H7',
    schedule: "Two clients share a store: the bank's starts up while an order of the shop's waits for the network.",
    rule: 'P4',
    steps: [
      open(0),
      network('request-lost'),
      submit('order-1'),
      pass(30),
      kill(0),
      { do: 'open', tab: 1, client: 'bank' },
      pass(minute),
      open(0),
      pass(minute),
    ],
    ends: [{ intent: 'order-1', state: 'succeeded', effects: 1 }],
    without: {
      name: "a client works other clients' records",
      edits: [
        {
          file: 'src/stores/memory.ts',
          find: '[[shelf.due, named(client, scope), byDueTime] as const]',
          replace: "[[shelf.due, named('', scope), byDueTime] as const]",
        },
        {
          file: 'src/stores/memory.ts',
          find: 'const rows = shelf.due.get(named(client, scope)) ?? []\n        const end',
          replace: "const rows = shelf.due.get(named('', scope)) ?? []\n        const end",
        },
        {
          file: 'src/stores/memory.ts',
          find: 'const rows = shelf.due.get(named(client, scope)) ?? []\n        return',
          replace: "const rows = shelf.due.get(named('', scope)) ?? []\n        return",
        },
      ],
    },
  },
  {
    hole: 'H15',
    schedule: 'The server knows no keys, and the tab dies while it sends; the next start finds the record.',
    rule: 'P20, P1',
    setting: { dialect: 'none' },
    steps: [open(0), network('black-hole-after'), submit('order-1'), pass(second), kill(0), open(1), pass(minute)],
    ends: [{ intent: 'order-1', state: 'unknown', because: 'server_does_not_deduplicate', effects: 1 }],
    without: {
      name: 'what a dead tab was sending counts as never sent',
      edits: [
        {
          file: 'src/protocol/transitions.ts',
          find: "      ...doubted('recovered', []),\n",
          replace: "      to({ name: 'waiting', because: 'recovered' }, 'P20', [], ['takeBackAttempt', 'dueNow']),\n",
        },
      ],
    },
  },
  {
    hole: 'H58',
    schedule: "The server knows no keys, and the answer's body breaks off: nobody asks for it again.",
    rule: 'section 6',
    setting: { dialect: 'none' },
    steps: [open(0), network('answer-cut'), submit('order-1'), pass(minute)],
    ends: [{ intent: 'order-1', state: 'succeeded', effects: 1 }],
    without: {
      name: 'a cut answer is asked for again where nobody de-duplicates',
      edits: [
        {
          file: 'src/protocol/transitions.ts',
          find: "'section 6: ask again for the replay',\n        ['deduplicates', 'windowOpen', 'attemptsLeft'],",
          replace: "'section 6: ask again for the replay',\n        ['attemptsLeft'],",
        },
        {
          file: 'src/protocol/transitions.ts',
          find: "  ...unknown('server_does_not_deduplicate', 'P1', ['inDoubt', '!deduplicates']),\n",
          replace: '',
        },
        {
          file: 'src/protocol/window.ts',
          find: 'if (policy.retentionMs === null) return 0',
          replace: 'if (policy.retentionMs === null) return Number.POSITIVE_INFINITY',
        },
      ],
    },
  },
  {
    hole: 'H63',
    schedule: 'Nobody awaits the answer of an order that fails; the failure ends no process.',
    rule: 'every promise of ours is handled',
    steps: [open(0), submit('order-1', { content: 'broken' }), pass(minute)],
    ends: [{ intent: 'order-1', state: 'unknown', because: 'stored_failure', effects: 0 }],
    without: {
      name: 'a failure that nobody awaits is not handled',
      edits: [
        {
          file: 'src/engine/handle.ts',
          find: '    super.then(undefined, () => {})\n',
          replace: '',
        },
      ],
    },
  },
]
