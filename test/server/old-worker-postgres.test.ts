import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { until } from '../support/until.ts'
import type { Fleet } from './kill/fleet.ts'
import { pointsOfTask } from './kill/kill-task.ts'
import { inLanes } from './kill/lanes.ts'
import { overtakeAt } from './kill/overtake.ts'
import { goOnTooLate, moments, type RealStop, stopForReal } from './kill/real-stops.ts'
import { byKey, submit } from './kill/shop.ts'
import { LONG, setWorkStage, type WorkStage } from './kill/stage-of-work.ts'
import { stopWorkerAt } from './kill/stop-task.ts'
import { acceptJob, indicesOf, type TaskPath, taskPaths, taskTruthOf, unlessOver } from './kill/tasks.ts'
import type { Provider } from './kill/work.ts'
import type { Jump, WorkerQuestion } from './kill/worker-program.ts'

let stage: WorkStage
let oldOnes: Fleet<null>

beforeAll(async () => {
  stage = await setWorkStage(0)
  oldOnes = stage.fleet(LONG, 0, { willBeStopped: true })
})

afterAll(() => stage?.end())

const jumps: readonly Jump[] = ['both', 'wall', 'monotonic']

/**
 * At the call itself, timers must be overdue afterwards: between the kit's last look at the clocks and the network, it
 * is the time limit that keeps a call from being made. Of a machine that slept in this very moment nobody can know.
 */
function jumpAt(point: string, index: number): Jump {
  return point === 'the call is made' ? 'both' : (jumps[index % jumps.length] ?? 'both')
}

describe('F10, P63, P65: a worker that was stopped, lost its work and goes on, at any point of', () => {
  it.each(taskPaths.map((path, number) => [path.title, path, number] as const))(
    '%s',
    async (_title, path, number) => {
      const { points, complaints } = await pointsOfTask(path, stage, `work-${number}`)
      expect(complaints).toEqual([])
      const wrong: string[] = []
      await inLanes(indicesOf(path, points), async (next, lane) => {
        const [old, heir] = [await oldOnes.take(), await stage.workers.take()]
        for (let index = next(); index !== undefined; index = next()) {
          const point = points[index] ?? ''
          const at = { point, index, jump: jumpAt(point, index), key: `work-${number}-${index}` }
          const operation = `work-${number}-lane-${lane}`
          const found = await stopWorkerAt(path, stage.pool, { old, heir }, { ...at, operation })
          wrong.push(...found.map((complaint) => `${index} (${points[index]}): ${complaint}`))
        }
        await Promise.all([old.kill(), heir.kill()])
      })
      expect(wrong, points.join('\n')).toEqual([])
    },
    120_000,
  )

  it('P63: while another one has it: nothing that it writes is kept, whatever its clocks say of its lease', async () => {
    const [path] = taskPaths as [TaskPath, ...TaskPath[]]
    const { points } = await pointsOfTask(path, stage, 'work-overtaken')
    const wrong: string[] = []
    await inLanes(indicesOf(path, points), async (next, lane) => {
      const [old, heir] = [await oldOnes.take(), await oldOnes.take()]
      const operation = `overtaken-lane-${lane}`
      for (let index = next(); index !== undefined; index = next()) {
        const at = { points, index, key: `overtaken-${index}`, operation }
        const found = await overtakeAt(path, stage.pool, { old, heir }, at)
        wrong.push(...found.map((complaint) => `${index} (${points[index]}): ${complaint}`))
      }
      await Promise.all([old.kill(), heir.kill()])
    })
    expect(wrong, points.join('\n')).toEqual([])
  }, 120_000)
})

describe('F10, P63, P65: by the clocks that there are', () => {
  const providers: readonly Provider[] = ['takesKeys', 'canBeAsked', 'neither']
  const cases = providers.flatMap((provider) =>
    (Object.keys(moments) as (keyof typeof moments)[]).map((moment) => ({ provider, moment })),
  )

  it('a worker that is stopped until its lease is over and others have finished its work changes nothing', async () => {
    const terms = { leaseMs: 2000, transitMs: 2000 }
    const slow = stage.fleet(terms, 0, { willBeStopped: true })
    const heir = await stage.fleet({ ...LONG, transitMs: terms.transitMs }, 0).take()
    const points = Object.fromEntries(
      await Promise.all(
        providers.map(async (provider) => {
          const plan = { provider, packs: false, fails: false, isRefused: false }
          const path = { title: '', plan, shows: [], firstStatus: 'succeeded' }
          return [provider, (await pointsOfTask(path, stage, `real-${provider}`)).points] as const
        }),
      ),
    )
    const stops = cases.map(({ provider, moment }, index): RealStop => {
      return { provider, moment, operation: `real-${index}`, points: points[provider] ?? [] }
    })
    const standing = await Promise.all(
      stops.map(async (stop) => ({ stop, stopped: await stopForReal(stop, stage, slow) })),
    )
    await heir.ask({ start: stops.map(({ operation }) => operation) } satisfies WorkerQuestion)
    const found = await Promise.all(standing.map(({ stop, stopped }) => goOnTooLate(stopped, stop, stage)))
    expect(found.flat()).toEqual([])
  }, 120_000)

  it('B120, F11: a service that takes longer than the limit gets one id every time, and nobody says "failed"', async () => {
    const { pool, provider } = stage
    const worker = await stage.fleet({ ...LONG, transitMs: 400 }, 0).take()
    await provider.ask({ hold: 'slow' })
    const job = await acceptJob(pool, 'slow', 'slow', {
      provider: 'takesKeys',
      packs: false,
      fails: false,
      isRefused: false,
    })
    await worker.ask({ start: ['slow'] } satisfies WorkerQuestion)
    const told = new Set<string>()
    await until('the service was called several times', async () => {
      const { rowCount } = await pool.query(`select from charge_requests where account = 'slow'`)
      const monitor = await byKey(job.send, 'GET', 'slow', 'slow')
      if (monitor !== 'nothing') told.add((JSON.parse(monitor.body) as { status: string }).status)
      // The client tries again as well, and is told the same as the first time.
      expect(await submit(job.send, 'later', 'slow')).toEqual({ ...(job.accepted as object), replayed: true })
      return (rowCount ?? 0) >= 4
    })
    expect([...told].filter((status) => status !== 'processing' && status !== 'failed_retryable')).toEqual([])
    await provider.ask({ release: 'slow' })
    await until('it succeeds', async () => (await taskTruthOf(pool, 'slow')).status === 'succeeded')
    expect(await taskTruthOf(pool, 'slow')).toMatchObject({
      charges: [expect.any(Number)],
      operationIds: [expect.any(String)],
    })
    expect(await unlessOver(pool, job)).toEqual([])
  })
})
