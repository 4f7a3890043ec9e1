import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Fleet } from './kill/fleet.ts'
import { pointsOfTask } from './kill/kill-task.ts'
import { LANES } from './kill/lanes.ts'
import { LONG, setWorkStage, type WorkStage } from './kill/stage-of-work.ts'
import { stopWorkerAt } from './kill/stop-task.ts'
import { taskPaths } from './kill/tasks.ts'
import type { Jump } from './kill/worker-program.ts'

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
      const left = points.map((_, index) => index)
      const wrong: string[] = []
      const lane = async (_: unknown, lane: number): Promise<void> => {
        const [old, heir] = [await oldOnes.take(), await stage.workers.take()]
        for (let index = left.shift(); index !== undefined; index = left.shift()) {
          const point = points[index] ?? ''
          const at = { point, index, jump: jumpAt(point, index), key: `work-${number}-${index}` }
          const found = await stopWorkerAt(
            path,
            stage.pool,
            { old, heir },
            { ...at, operation: `work-${number}-lane-${lane}` },
          )
          wrong.push(...found.map((complaint) => `${index} (${points[index]}): ${complaint}`))
        }
      }
      await Promise.all(Array.from({ length: LANES }, lane))
      expect(wrong, points.join('\n')).toEqual([])
    },
    120_000,
  )
})
