/** Faults around the hand-over: the key, the bytes, the order of storing and sending, leases, identity. */
import { fault, type Mutant } from './mutant.ts'

const runner = 'src/engine/runner.ts'
const ledger = 'src/engine/ledger.ts'

export const ofSending: readonly Mutant[] = [
  fault(
    'a new key for each attempt',
    'P5',
    'src/engine/wire.ts',
    ' : record.key)\n  tellAge(headers, record, context)',
    ' : record.attempts > 1 ? [record.key, record.attempts].join() : record.key)\n  tellAge(headers, record, context)',
  ),
  fault(
    'sent before it is stored',
    'P17',
    runner,
    '          const stored = await persist(loaded, record, blobs, {',
    "          if (exchange === 'send') {\n            current = { row: loaded.row, record }\n            break\n          }\n          const stored = await persist(loaded, record, blobs, {",
  ),
  fault(
    'the body is written anew at each send',
    'P9',
    'src/engine/wire.ts',
    '{ body: (body ?? new Uint8Array()) as Uint8Array<ArrayBuffer> }',
    "{ body: new TextDecoder().decode(body ?? new Uint8Array()) + (record.attempts > 1 ? ' ' : '') }",
  ),
  fault(
    'a header of the day goes with the stored request',
    'P9',
    'src/engine/wire.ts',
    '  if (dialect.keyHeader !== null) headers.set(',
    "  headers.set('x-sent-at', String(context.times.now))\n  if (dialect.keyHeader !== null) headers.set(",
  ),
  fault(
    'whoever thaws sends, whatever has happened to the record',
    'P35, P47, H9',
    runner,
    "    if (isOverslept(loaded, prepared, takesMs)) return refused('lease')\n",
    '',
  ),
  fault(
    'a lease is not respected',
    'P47',
    ledger,
    '      if (token === null || leaseUntil === null) return true',
    '      if (token !== null || leaseUntil === null) return true',
  ),
  fault(
    'a lease never ends',
    'P49',
    ledger,
    '      const isOver = leaseUntil <= clock.now() || leaseUntil > clock.now() + 2 * leaseMs',
    '      const isOver = leaseUntil > clock.now() + 2 * leaseMs',
  ),
  fault(
    'writes do not compare the revision',
    'P47, H38',
    'src/stores/memory.ts',
    'if (stored?.revision !== expected.revision || stored.token !== expected.token) return null',
    'if (stored === undefined) return null',
  ),
  fault(
    'a record found as sending counts as new',
    'P20, H15',
    'src/protocol/transitions.ts',
    "      ...doubted('recovered', []),",
    "      to({ name: 'queued' }, 'P20', [], ['takeBackAttempt', 'dueNow']),",
  ),
  {
    name: 'a stored intent is sent as whoever is signed in',
    rule: 'P3, H5, H6',
    edits: [
      {
        file: 'src/engine/credentials.ts',
        find: '      const sameScope = (): boolean => options.scope() === record.scope',
        replace: '      const sameScope = (): boolean => true',
      },
      {
        file: 'src/engine/credentials.ts',
        find: 'credentials.scope !== record.scope',
        replace: 'credentials.scope === null',
      },
    ],
  },
  fault(
    'credentials are kept with the request',
    'P51',
    runner,
    '      return (await advance(found, due, null, prepared)).was',
    '      const request = { ...record.request, headers: [...record.request.headers, ...leave.headers] }\n      return (await advance({ ...found, record: { ...record, request } }, due, null, prepared)).was',
  ),
  fault(
    'the send-by time is not looked at',
    'P36, H29',
    'src/protocol/guards.ts',
    'record.sendBefore !== null && times.now >= record.sendBefore,',
    'false && record.sendBefore !== null && times.now >= record.sendBefore,',
  ),
  fault(
    'lanes are no lanes',
    'P34, H28',
    'src/protocol/guards.ts',
    '  laneFree: (_record, _event, { laneFree }) => laneFree,',
    '  laneFree: () => true,',
  ),
  fault(
    'a lane goes on behind an unknown head',
    'P34, H28',
    'src/protocol/record.ts',
    '  if (!isSettled(record.state.name)) return true\n',
    "  if (record.state.name === 'unknown') return false\n  if (!isSettled(record.state.name)) return true\n",
  ),
  fault(
    'a named lane goes on after a refusal',
    'P34',
    'src/protocol/record.ts',
    "  return record.lane.kind === 'named' && record.state.name !== 'succeeded'",
    '  return false',
  ),
  fault(
    'nothing is armed after a failure',
    'P33',
    'src/protocol/updates.ts',
    '    return { dueAt: times.now + pace(backoffMs(policy.backoff, offline ? attempts : spent, random), event, context) }',
    '    void [attempts, spent, policy, random, times, offline, event]\n    return { dueAt: null }',
  ),
  fault('attempts are not counted', 'P21, P29', 'src/protocol/updates.ts', '    spent: spent + 1,\n', '    spent,\n'),
  fault(
    'there is no end of attempts',
    'P29, H47',
    'src/protocol/guards.ts',
    '  attemptsLeft: (record, _event, { policy }) => record.spent < policy.maxAttempts,',
    '  attemptsLeft: () => true,',
  ),
  fault(
    'a wait that the server asked for is cut short',
    'P32',
    'src/protocol/updates.ts',
    'Math.ceil(Math.max(ownMs, toldMs + random * policy.backoff.baseMs))',
    'Math.ceil(Math.min(ownMs, toldMs + random * policy.backoff.baseMs))',
  ),
  fault(
    'Retry-After in seconds is read as milliseconds',
    'P32',
    'src/protocol/retry-after.ts',
    '  if (/^\\d+$/.test(text)) return waitOf(Number(text))',
    '  if (/^\\d+$/.test(text)) return Number(text)',
  ),
]
