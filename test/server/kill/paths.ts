/** The ways through the synchronous path. Each is taken once as it should be, and then once for each point where it can end. */
import type pg from 'pg'
import { until } from '../../support/until.ts'
import { gate } from '../world.ts'
import { isWaiting, type Member } from './fleet.ts'
import { AMOUNT, byKey, type Heard, type OperationName, overHttp, type Send, shopOf, submit, within } from './shop.ts'
import type { ShopReady } from './shop-program.ts'
import { type Facts, OPENING_BALANCE } from './tables.ts'

/** What stands around the process that dies. */
export interface Stage {
  readonly pool: pg.Pool
  /** A shop in this process, which nobody kills. */
  readonly rival: Rival
}

/** The facts about a key, with the orders counted. */
export type Truth = Omit<Facts, 'orders'> & { readonly orders: number }

export interface KillPath {
  readonly title: string
  /** Statements without which the list of points cannot be right, in their order. */
  readonly shows: readonly string[]
  prepare?(stage: Stage, key: string): Promise<unknown>
  /** The request that dies on its way. */
  first(stage: Stage, member: Member<ShopReady>, key: string): Promise<Heard>
  /** The same request, as another process gets it. */
  again(send: Send, key: string): Promise<Heard>
  /** Another sender in this process takes part. */
  readonly isBehindRival?: boolean
  /** What is true in the end, wherever it died. */
  readonly done: Truth
  /** Status of the first request, where nothing dies; default: that of the others. */
  readonly firstStatus?: number
  readonly status: number
  /** Repetitions carry the marker of a replay. */
  readonly isMarked: boolean
  /** What else must be so in the end. */
  readonly after?: { readonly ask: KillPath['again']; readonly status: number; readonly says: string }
}

/** A sender of the same key in this process, who is held up in `execute`. */
export interface Rival {
  /** Sends, and is not held up. */
  send(operation: OperationName, key: string): Promise<Heard>
  /** Resolves once it is in `execute`. */
  hold(key: string): Promise<Held>
}

export interface Held {
  /** Lets it go on, and waits for its answer. */
  release(how: 'commits' | 'fails'): Promise<Heard>
}

export function rivalOf(pool: pg.Pool): Rival {
  const held = new Map<string, { readonly enter: () => void; readonly leave: Promise<'commits' | 'fails'> }>()
  const shop = shopOf(pool, {
    async during({ key }) {
      const place = held.get(key)
      if (place === undefined) return
      place.enter()
      if ((await place.leave) === 'fails') throw new Error('the rival fails')
    },
  })
  const send: Rival['send'] = (operation, key) => submit(within(shop), operation, key)
  return {
    send,
    async hold(key) {
      const inside = gate()
      let leave: (how: 'commits' | 'fails') => void = () => {}
      held.set(key, {
        enter: inside.open,
        leave: new Promise((resolve) => {
          leave = resolve
        }),
      })
      const heard = send('create', key)
      await inside.opened
      return {
        release(how) {
          held.delete(key)
          leave(how)
          return heard
        },
      }
    },
  }
}

const posts =
  (operation: OperationName): KillPath['again'] =>
  (send, key) =>
    submit(send, operation, key)
const asks =
  (method: 'GET' | 'DELETE', operation: OperationName): KillPath['again'] =>
  (send, key) =>
    byKey(send, method, operation, key)

/** The whole path is one request to one process. */
function plain(again: KillPath['again']): Pick<KillPath, 'first' | 'again'> {
  return { again, first: (_stage, { ready }, key) => again(overHttp(ready.url), key) }
}

/** The request comes while another one with its key is in `execute`, which then ends in some way. */
function behindRival(
  operation: OperationName,
  rivalEnd: 'commits' | 'fails',
  mayEnd: (stage: Stage, member: Member<ShopReady>) => Promise<boolean>,
): KillPath['first'] {
  return async (stage, member, key) => {
    const rival = await stage.rival.hold(key)
    let isHeard = false
    const heard = submit(overHttp(member.ready.url), operation, key)
    void heard.then(() => {
      isHeard = true
    })
    await until('the request waits for its rival, or has ended', async () => isHeard || (await mayEnd(stage, member)))
    await rival.release(rivalEnd)
    return heard
  }
}

const waits = ({ pool }: Stage, { name }: Member<ShopReady>) => isWaiting(pool, name)

const nothing: Truth = { orders: 0, journal: 0, balance: OPENING_BALANCE, keys: [], tasks: [] }
const ordered: Truth = {
  orders: 1,
  journal: 1,
  balance: OPENING_BALANCE - AMOUNT,
  keys: ['finished'],
  tasks: [],
}

const BUSINESS = ['update accounts', 'insert into orders', 'insert into journal'] as const
const CLAIM = ['begin isolation level read committed', 'insert into samekey_keys'] as const
const MARK = 'set local lock_timeout'
const FINISH = 'update samekey_keys set state'
const READ = 'select floor(extract(epoch from clock_timestamp())'
const VOIDED = { ask: posts('create'), status: 409, says: 'idempotency_voided' }

export const paths: readonly KillPath[] = [
  {
    title: 'P54, F4, F5, B115, B119, B123: a submit that executes',
    shows: [...CLAIM, MARK, ...BUSINESS, FINISH, 'commit'],
    ...plain(posts('create')),
    done: ordered,
    status: 201,
    isMarked: true,
  },
  {
    title: 'P56, F4, F5, B123: a refusal that is remembered, its business change taken back to the savepoint',
    shows: [...CLAIM, MARK, ...BUSINESS, 'rollback to savepoint', FINISH, 'commit'],
    ...plain(posts('refuse')),
    done: { ...nothing, keys: ['finished'] },
    status: 402,
    isMarked: true,
  },
  {
    title: 'P56, F4, B123: a refusal that is not remembered',
    shows: [...CLAIM, MARK, ...BUSINESS, 'rollback'],
    ...plain(posts('decline')),
    done: nothing,
    status: 422,
    isMarked: false,
  },
  {
    title: 'P62, F4, F5, F9, B123: a submit that is accepted',
    shows: [...CLAIM, MARK, ...BUSINESS, FINISH, 'with task as ( insert into samekey_tasks', 'commit'],
    ...plain(posts('later')),
    done: { ...ordered, keys: ['accepted'], tasks: [{ status: 'processing', epoch: 0 }] },
    status: 202,
    isMarked: true,
  },
  {
    title: 'P55, F5, B118, B123: a replay',
    prepare: ({ rival }, key) => rival.send('create', key),
    shows: [...CLAIM, READ, 'rollback'],
    ...plain(posts('create')),
    done: ordered,
    status: 201,
    isMarked: true,
  },
  {
    title: 'P54, F7, B113, B123: a submit that waits for a rival, which commits',
    shows: [...CLAIM, READ, 'rollback'],
    isBehindRival: true,
    first: behindRival('create', 'commits', waits),
    again: posts('create'),
    done: ordered,
    status: 201,
    isMarked: true,
  },
  {
    title: 'P54, F4, F7, B123: a submit that waits for a rival, which rolls back',
    shows: [...CLAIM, MARK, ...BUSINESS, FINISH, 'commit'],
    isBehindRival: true,
    first: behindRival('create', 'fails', waits),
    again: posts('create'),
    done: ordered,
    status: 201,
    isMarked: true,
  },
  {
    title: 'P54, F7, B113, B123: a submit that waits for a rival too long, and is told "in progress"',
    shows: [...CLAIM, 'rollback'],
    // It need not wait: its own limit ends it, or the kill.
    isBehindRival: true,
    first: behindRival('hasty', 'commits', () => Promise.resolve(false)),
    again: posts('create'),
    done: ordered,
    firstStatus: 409,
    status: 201,
    isMarked: true,
  },
  {
    title: 'P58, F19, B123: a void of a free key',
    shows: [...CLAIM, MARK, 'commit'],
    ...plain(asks('DELETE', 'create')),
    done: { ...nothing, keys: ['voided'] },
    status: 200,
    isMarked: false,
    after: VOIDED,
  },
  {
    title: 'P58, F19, H34, B123: a void of accepted work, which takes back what accepting it wrote',
    prepare: ({ rival }, key) => rival.send('later', key),
    shows: [
      ...CLAIM,
      READ,
      'select status, input, epoch',
      MARK,
      'update accounts set balance = balance + amount',
      'delete from orders',
      'with settled as ( update samekey_keys',
      READ,
      'commit',
    ],
    ...plain(asks('DELETE', 'later')),
    done: { ...nothing, keys: ['voided'], tasks: [{ status: 'voided', epoch: 1 }] },
    status: 200,
    isMarked: false,
    after: { ...VOIDED, ask: posts('later') },
  },
  {
    title: 'P58, F19, B123: a void that comes too late',
    prepare: ({ rival }, key) => rival.send('create', key),
    shows: [...CLAIM, READ, 'rollback'],
    ...plain(asks('DELETE', 'create')),
    done: ordered,
    status: 200,
    isMarked: false,
    after: { ask: posts('create'), status: 201, says: '"id"' },
  },
  {
    title: 'P43, B123: a look-up',
    prepare: ({ rival }, key) => rival.send('create', key),
    shows: [READ],
    ...plain(asks('GET', 'create')),
    done: ordered,
    status: 200,
    isMarked: false,
  },
]
