import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { killWorkerAt, pointsOfTask } from './kill/kill-task.ts'
import { LANES, missingOf, statementsOf, throughAll } from './kill/lanes.ts'
import { setWorkStage, type WorkStage } from './kill/stage-of-work.ts'
import { indicesOf, taskPaths } from './kill/tasks.ts'

let stage: WorkStage

beforeAll(async () => {
  stage = await setWorkStage(LANES + 1)
})

afterAll(() => stage?.end())

describe('F9, B123: a worker that is killed at any point of', () => {
  it.each(taskPaths.map((path, number) => [path.title, path, number] as const))(
    '%s',
    async (_title, path, number) => {
      const { points, complaints } = await pointsOfTask(path, stage, `work-${number}`)
      expect(complaints).toEqual([])
      expect(missingOf(statementsOf(points), path.shows)).toBeNull()
      const wrong = await throughAll(points, indicesOf(path, points), stage.workers.take, (victim, heir, index, lane) =>
        killWorkerAt(
          path,
          stage,
          { victim, heir },
          {
            point: points[index] ?? '',
            index,
            key: `work-${number}-${index}`,
            operation: `work-${number}-lane-${lane}`,
          },
        ),
      )
      expect(wrong, points.join('\n')).toEqual([])
    },
    120_000,
  )
})
