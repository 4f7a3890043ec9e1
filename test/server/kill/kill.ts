/** Takes one path to its end, or to a point where the process dies, and looks at what is true then. */
import { isDeepStrictEqual } from 'node:util'
import { type Fleet, type Member, untilForgotten } from './fleet.ts'
import type { KillPath, Stage, Truth } from './paths.ts'
import { overHttp } from './shop.ts'
import type { ShopReady } from './shop-program.ts'
import { openAccount } from './tables.ts'
import { type Complaints, complaintsAbout, truthOf, unlessStatus, unlessTrue } from './truth.ts'

/** The points of a path, as a run finds them in which nobody dies. */
export async function pointsOfPath(
  path: KillPath,
  stage: Stage,
  fleet: Fleet<ShopReady>,
  key: string,
): Promise<{ readonly points: readonly string[]; readonly complaints: Complaints }> {
  const member = await fleet.take()
  await openAccount(stage.pool, key)
  await path.prepare?.(stage, key)
  await member.ask({ arm: null })
  const heard = await path.first(stage, member, key)
  const points = await member.ask<string[]>({ reached: true })
  const complaints = [
    ...unlessStatus('without a kill', heard, path.firstStatus ?? path.status),
    ...unlessTrue('without a kill', await truthOf(stage.pool, key), [path.done]),
  ]
  await member.kill()
  return { points, complaints }
}

/** One process dies at one point of a path; another one gets the same request, three times. */
export async function killAt(
  path: KillPath,
  stage: Stage,
  { victim, heir }: { readonly victim: Member<ShopReady>; readonly heir: Member<ShopReady> },
  { points, index, key }: { readonly points: readonly string[]; readonly index: number; readonly key: string },
): Promise<Complaints> {
  const { pool } = stage
  await openAccount(pool, key)
  await path.prepare?.(stage, key)
  const before = await truthOf(pool, key)
  await victim.ask({ arm: index })
  const heard = await path.first(stage, victim, key)
  const { signal, said } = await victim.ended
  const point = points[index] ?? ''
  if (signal !== 'SIGKILL' || said !== point) return [`it ended with ${signal} at "${said}"`]
  const complaints: string[] = []
  if (index < points.length - 1 && heard !== 'nothing') complaints.push(`it answered: ${JSON.stringify(heard)}`)

  // What was on the wire may still be at work in the database. The same request comes at once then; at all other points
  // the dust settles first, and is looked at.
  let wasDone: boolean | null = null
  if (!point.startsWith('sent')) {
    await untilForgotten(pool, victim.name)
    const found = await truthOf(pool, key)
    wasDone = isDeepStrictEqual(found, path.done)
    complaints.push(...unlessTrue('after the kill', found, allowedAt(points, index, before, path.done)))
  }
  const last = index === points.length - 1 ? heard : null
  complaints.push(...(await complaintsAbout(path, pool, { send: overHttp(heir.ready.url), key, wasDone, first: last })))
  return complaints
}

/** All or nothing; and which of both, wherever that is certain. */
function allowedAt(points: readonly string[], index: number, before: Truth, done: Truth): Truth[] {
  const sent = points.indexOf('sent: commit')
  // A path that commits nothing: nothing of it is left, or what a rival did is there.
  if (sent < 0) return [done]
  return index < sent ? [before] : [done]
}
