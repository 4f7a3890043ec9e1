/** The way of one request through the mocked server, stage by stage. */
import type { Clock } from '../ports.ts'
import { IDEMPOTENCY_AGE } from '../protocol/wire.ts'
import { type AnswerData, answerFor, otherProblem, problemAnswer } from '../server/answer-for.ts'
import type { Handler } from '../server/cors.ts'
import { toResponse } from '../server/respond.ts'
import { idempotencyRoutes } from '../server/routes.ts'
import type { AcceptedWork } from './accepted-work.ts'
import { delivered, framed, readAnswer } from './answers.ts'
import type { Connection } from './connections.ts'
import type { Stages } from './faults.ts'
import { decisionOf, type KitOptions, kitHandler, type Visit } from './kit.ts'
import { connectionRefused, connectionReset } from './network-error.ts'
import type { NamedOperation } from './operations.ts'
import { headersOf, type LogEntry } from './request-log.ts'
import type { Place, Target } from './targets.ts'
import type { World } from './world.ts'

/** What is the same for every request. */
export interface Service {
  readonly clock: Pick<Clock, 'now'>
  readonly latencyMs: number
  readonly place: Place
  readonly kit: KitOptions
  /** Puts the CORS lines on what the server answers. */
  readonly withCors: (handler: Handler) => Handler
  readonly operations: readonly NamedOperation[]
  /** Answers what is no operation and no key; null for 404. */
  readonly routes: (request: Request, path: string, world: World) => Response | null | Promise<Response | null>
}

/** A request that has been sent. It stays in its world, even if a new one begins meanwhile. */
export interface Arrival {
  readonly request: Request
  readonly target: Target
  readonly stages: Stages
  readonly entry: LogEntry
  readonly connection: Connection
  readonly world: World
  readonly work: AcceptedWork
}

/**
 * Answers one request, as its stages say.
 *
 * @throws NetworkError where the connection breaks.
 */
export async function serve(service: Service, arrival: Arrival): Promise<Response> {
  const { clock, latencyMs } = service
  const { request, stages, entry, connection, world } = arrival
  if (stages.refused) throw connectionRefused()
  entry.body = new Uint8Array(await request.arrayBuffer())
  await connection.pause(latencyMs / 2 + (stages.transitMs ?? 0))
  if (stages.lost === 'drop') throw connectionReset()
  if (stages.lost === 'hang') return connection.hang()
  await world.store.reap()
  const answer = stages.instead ?? (await decide(service, arrival))
  await connection.pause(stages.answerMs ?? 0)
  const sent = framed(answer, clock.now())
  entry.answer = {
    status: sent.status,
    headers: headersOf(sent.headers),
    body: sent.body ?? new Uint8Array(),
  }
  await connection.pause(latencyMs / 2)
  if (stages.answer === 'drop') throw connectionReset()
  if (stages.answer === 'hang') return connection.hang()
  return delivered(sent, stages, connection)
}

/** What the server answers. It never sees the client's signal: a client that goes away stops nothing here. */
async function decide(service: Service, arrival: Arrival): Promise<AnswerData> {
  const { target, stages, entry, world } = arrival
  const { operation, key } = target
  if (stages.busy) {
    entry.decided = 'idempotency_in_progress'
    return answerFor({ kind: 'inProgress' }, key ?? '')
  }
  if (stages.key === 'expired' && key !== null) world.expired.add(key)
  if (stages.key === 'voided' && operation !== null && key !== null) await voidBefore(service, arrival, operation, key)
  let executed = false
  const visit: Visit = {
    stages,
    pause: arrival.connection.pause,
    executing() {
      executed = true
    },
  }
  const answer = await readAnswer(await ask(service, arrival, visit))
  entry.decided = decisionOf(executed, answer)
  return answer
}

async function ask(service: Service, arrival: Arrival, visit: Visit): Promise<Response> {
  const { entry, world, target } = arrival
  const request = again(arrival.request, entry.body, target.key !== null && world.expired.has(target.key))
  return service.withCors((shown) => handled(service, arrival, visit, shown))(request)
}

async function handled(
  { kit, place, operations, routes }: Service,
  { target, world, work, connection }: Arrival,
  visit: Visit,
  request: Request,
): Promise<Response> {
  const { kind, path, operation } = target
  if (kind === 'submit' && operation !== null) return kitHandler(kit, world, work, operation, visit)(request)
  const keys = idempotencyRoutes({
    keysUrl: place.keysPathname,
    operations: operations.map((each) => kitHandler(kit, world, work, each, visit)),
  })
  const answer = path === null ? null : await keys(request)
  if (answer !== null) return answer
  await connection.pause(visit.stages.commitMs ?? 0)
  const other = path === null ? null : await routes(request, path, world)
  return other ?? toResponse(problemAnswer(otherProblem(404, 'not-found', 'The mock has nothing here.')))
}

/** Somebody with the same credentials voided the key a moment ago, through the kit like anybody. */
async function voidBefore(
  { kit, place }: Service,
  { request, connection, world, work }: Arrival,
  operation: NamedOperation,
  key: string,
): Promise<void> {
  const visit: Visit = { stages: {}, pause: connection.pause, executing() {} }
  const path = `${place.keysPathname}/${encodeURIComponent(operation.name)}/${encodeURIComponent(key)}`
  const headers = new Headers(request.headers)
  headers.delete('content-type')
  const voiding = new Request(place.origin + path, { method: 'DELETE', headers })
  await kitHandler(kit, world, work, operation, visit).void(voiding, key)
}

/** The request without its signal and with its body; too old, where its key is. */
function again({ url, method, headers }: Request, body: Uint8Array<ArrayBuffer>, tooOld: boolean): Request {
  const shown = new Headers(headers)
  if (tooOld) shown.set(IDEMPOTENCY_AGE, String(Number.MAX_SAFE_INTEGER))
  return new Request(url, { method, headers: shown, body: body.length === 0 ? null : body })
}
