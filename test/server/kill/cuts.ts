/** One connection to the database is cut at one place of a path; nobody dies, and the sender hears what the kit knows. */
import { isDeepStrictEqual } from 'node:util'
import type { PgPool } from '../../../src/server/postgres/client.ts'
import type { Cut, CuttingProxy, Exchange } from '../../support/cutting-proxy.ts'
import type { KillPath, Stage } from './paths.ts'
import { type Heard, type Send, shopOf, within } from './shop.ts'
import { openAccount } from './tables.ts'
import { type Complaints, complaintsAbout, truthOf, unlessStatus, unlessTrue } from './truth.ts'

/** A shop whose database lies behind the proxy. */
export interface CutStage extends Stage {
  readonly behindProxy: PgPool
  readonly proxy: CuttingProxy
}

/** The exchanges of a path, as a run finds them in which nothing is cut. */
export async function exchangesOfPath(
  path: KillPath,
  stage: CutStage,
  key: string,
): Promise<{ readonly exchanges: readonly Exchange[]; readonly complaints: Complaints }> {
  const { pool, proxy, behindProxy } = stage
  await openAccount(pool, key)
  await path.prepare?.(stage, key)
  const send = within(shopOf(behindProxy))
  proxy.plan(null)
  const heard = await path.again(send, key)
  const exchanges = [...proxy.exchanges]
  const found = await truthOf(pool, key)
  return {
    exchanges,
    complaints: [
      ...unlessStatus('without a cut', heard, path.status),
      ...unlessTrue('without a cut', found, [path.done]),
    ],
  }
}

/** Every place at which a connection can be cut: around and within each exchange, and at each byte of a COMMIT's answer. */
export function cutsOf(exchanges: readonly Exchange[]): readonly Cut[] {
  return exchanges.flatMap(({ label, answerBytes }, exchange): Cut[] => {
    const bytes = label === 'commit' ? Array.from({ length: answerBytes }, (_, byte) => byte) : [0, answerBytes >> 1]
    return [
      { exchange, question: 'none', answerBytes: null },
      { exchange, question: 'most', answerBytes: null },
      { exchange, question: 'all', answerBytes: null },
      ...bytes.map((heard): Cut => ({ exchange, question: 'all', answerBytes: heard })),
    ]
  })
}

export async function cutAt(
  path: KillPath,
  stage: CutStage,
  { exchanges, cut, key }: { readonly exchanges: readonly Exchange[]; readonly cut: Cut; readonly key: string },
): Promise<Complaints> {
  const { pool, proxy, behindProxy } = stage
  const shop = shopOf(behindProxy)
  const send: Send = within(shop)
  await openAccount(pool, key)
  await path.prepare?.(stage, key)
  const before = await truthOf(pool, key)
  // So that the connection is there before the exchanges are counted.
  await behindProxy.query('select 1')
  proxy.plan(cut)
  const heard = await path.again(send, key)
  if (!proxy.hasCut) return ['it was not cut']
  const complaints = [...unlessWord(path, exchanges, cut, heard)]

  const isCommit = exchanges[cut.exchange]?.label === 'commit'
  let wasDone: boolean | null = null
  // Where nobody waited for the database to answer, the next request does not wait either.
  if (cut.question !== 'all' || cut.answerBytes !== null) {
    const committed = isCommit && cut.question === 'all'
    const found = await truthOf(pool, key)
    wasDone = isDeepStrictEqual(found, path.done)
    complaints.push(...unlessTrue('after the cut', found, [committed ? path.done : before]))
  }
  proxy.plan(null)
  complaints.push(...(await complaintsAbout(path, pool, { send, key, wasDone, first: null })))
  return complaints
}

/** The sender hears what is true: nothing more, and nothing less (P61). */
function unlessWord(path: KillPath, exchanges: readonly Exchange[], { exchange }: Cut, heard: Heard): string[] {
  const label = exchanges[exchange]?.label
  if (label === 'commit') return unlessProblem(heard, 'outcome_unknown')
  // Nothing was written that a rollback would have to take back, so its loss changes nothing.
  if (label === 'rollback') return unlessStatus('at the rollback', heard, path.status)
  return unlessProblem(heard, 'idempotency_unavailable')
}

function unlessProblem(heard: Heard, code: string): string[] {
  if (heard === 'nothing' || heard.status !== 503) return [`it answered ${JSON.stringify(heard)}`]
  const problem = JSON.parse(heard.body) as { readonly code: string }
  if (problem.code !== code) return [`it said ${problem.code} and not ${code}`]
  if (code === 'outcome_unknown' && /nothing was executed/.test(heard.body)) return [`it said ${heard.body}`]
  return 'idempotency-expires' in heard.headers ? ['it said that it is remembered'] : []
}
