import { virtualClock } from 'samekey/testing'
import { describe, expect, it } from 'vitest'
import { type Loop, type LoopOptions, startLoop, type Taken } from '../../src/server/loop.ts'
import { settled, type VirtualClock } from '../../src/testing/virtual-clock.ts'

interface World {
  readonly clock: VirtualClock
  readonly loop: Loop
  /** What waits to be taken. */
  readonly queue: string[]
  /** How many were asked for at each look. */
  readonly looks: number[]
  readonly given: string[]
  readonly failures: { readonly error: unknown; readonly waitMs: number }[]
  readonly signals: Map<string, AbortSignal>
  end(job: string, how?: 'well' | 'trouble'): void
}

const none: Taken<string> = { jobs: [], more: false, nextInMs: null }

function world(part: Partial<LoopOptions<string>> = {}): World {
  const clock = virtualClock()
  const queue: string[] = []
  const looks: number[] = []
  const given: string[] = []
  const failures: { error: unknown; waitMs: number }[] = []
  const signals = new Map<string, AbortSignal>()
  const ends = new Map<string, (end: 'well' | 'trouble') => void>()
  const loop = startLoop<string>({
    concurrency: 2,
    pollMs: 1000,
    backoff: { baseMs: 100, capMs: 5000, minMs: 10 },
    clock,
    random: () => 0.5,
    run(job, signal) {
      signals.set(job, signal)
      return new Promise((resolve) => ends.set(job, resolve))
    },
    giveBack: async (job) => void given.push(job),
    failed: (error, waitMs) => void failures.push({ error, waitMs }),
    ...part,
    take(free) {
      looks.push(free)
      if (part.take !== undefined) return part.take(free)
      const jobs = queue.splice(0, free)
      return Promise.resolve({ ...none, jobs, more: jobs.length === free })
    },
  })
  return { clock, loop, queue, looks, given, failures, signals, end: (job, how = 'well') => ends.get(job)?.(how) }
}

describe('taking', () => {
  it('looks at once, and then at its pace, give or take a quarter', async () => {
    const chances = [0, 0.999, 0.5]
    const { clock, looks } = world({ random: () => chances.shift() ?? 0.5 })
    await settled()
    expect(looks).toHaveLength(1)
    await clock.advance(749)
    expect(looks).toHaveLength(1)
    await clock.advance(1)
    expect(looks).toHaveLength(2)
    await clock.advance(1249)
    expect(looks).toHaveLength(2)
    await clock.advance(1)
    expect(looks).toHaveLength(3)
  })

  it('runs no more at a time than it may, and the end of one makes room for the next', async () => {
    const { clock, loop, queue, looks, end, signals } = world()
    await settled()
    queue.push('a', 'b', 'c')
    loop.wake()
    await settled()
    expect([loop.running(), queue]).toEqual([2, ['c']])
    await clock.advance(10_000)
    expect(looks).toEqual([2, 2])
    end('a')
    await settled()
    expect([...signals.keys()]).toEqual(['a', 'b', 'c'])
    expect(looks.at(-1)).toBe(1)
  })

  it('looks on while a look got something done, and when the next one is known to be due', async () => {
    const takes: Taken<string>[] = [
      { ...none, more: true },
      { ...none, more: true },
      { ...none, nextInMs: 40 },
    ]
    const { clock, looks } = world({ take: () => Promise.resolve(takes.shift() ?? none) })
    await settled()
    expect(looks).toHaveLength(3)
    await clock.advance(39)
    expect(looks).toHaveLength(3)
    await clock.advance(1)
    expect(looks).toHaveLength(4)
  })

  it('a wake during a look is not lost: what it was for may have come too late for that look', async () => {
    const answers: ((taken: Taken<string>) => void)[] = []
    const { loop, looks } = world({ take: () => new Promise((resolve) => answers.push(resolve)) })
    loop.wake()
    loop.wake()
    expect(looks).toHaveLength(1)
    answers[0]?.(none)
    await settled()
    expect(looks).toHaveLength(2)
    answers[1]?.(none)
    await settled()
    expect(looks).toHaveLength(2)
  })
})

describe('B114: a broken store', () => {
  it('is asked less and less often, whatever wakes come, and at the usual pace once it is back', async () => {
    let broken = true
    const { clock, loop, looks, failures } = world({
      take: () => (broken ? Promise.reject(new Error('away')) : Promise.resolve(none)),
      random: () => 1,
    })
    await settled()
    for (let second = 0; second < 60; second += 1) {
      loop.wake()
      await clock.advance(1000)
    }
    expect(failures.map(({ waitMs }) => waitMs).slice(0, 7)).toEqual([100, 200, 400, 800, 1600, 3200, 5000])
    expect(looks.length).toBeLessThan(20)
    broken = false
    await clock.advance(5000)
    const before = looks.length
    loop.wake()
    await settled()
    expect(looks).toHaveLength(before + 1)
  })

  it('a job that the store spoilt makes it rest too, and one that throws against its word', async () => {
    const { clock, loop, queue, looks, end } = world({ concurrency: 1 })
    await settled()
    queue.push('a')
    loop.wake()
    await settled()
    end('a', 'trouble')
    await settled()
    const before = looks.length
    loop.wake()
    await settled()
    expect(looks).toHaveLength(before)
    await clock.advance(55)
    expect(looks).toHaveLength(before + 1)

    const throwing = world({ take: () => Promise.resolve({ ...none, jobs: ['x'] }), run: () => Promise.reject('no') })
    await settled()
    expect([throwing.loop.running(), throwing.looks.length]).toEqual([0, 1])
  })

  it('keeps the process alive while nothing else does', async () => {
    const clock = virtualClock()
    const holds: (boolean | undefined)[] = []
    const held = {
      timer: (ms: number, run: () => void, hold?: boolean) => {
        holds.push(hold)
        return clock.timer(ms, run)
      },
    }
    world({ clock: held, take: () => Promise.reject(new Error('away')) })
    await settled()
    expect(holds).toEqual([true])
  })
})

describe('a stop', () => {
  it('takes nothing more and waits for what runs', async () => {
    const { clock, loop, queue, looks, end, signals } = world()
    await settled()
    queue.push('a')
    loop.wake()
    await settled()
    const stopped = loop.stop({ graceMs: 1000 })
    expect(loop.stop({ graceMs: 0 })).toBe(stopped)
    queue.push('b')
    loop.wake()
    await clock.advance(900)
    expect(signals.get('a')?.aborted).toBe(false)
    const before = looks.length
    end('a')
    expect(await stopped).toBe(0)
    expect(looks).toHaveLength(before)
    expect(clock.pending()).toBe(0)
  })

  it('aborts after the grace, and does not wait for ever for what ignores that', async () => {
    const { clock, loop, queue, end, signals } = world()
    await settled()
    queue.push('good', 'deaf')
    loop.wake()
    await settled()
    const stopped = loop.stop({ graceMs: 1000 })
    await clock.advance(1000)
    expect(signals.get('good')?.aborted).toBe(true)
    end('good')
    await clock.advance(15_000)
    expect(await stopped).toBe(1)
  })

  it('gives back what was being taken when it came', async () => {
    const answers: ((taken: Taken<string>) => void)[] = []
    const { loop, given, signals } = world({ take: () => new Promise((resolve) => answers.push(resolve)) })
    const stopped = loop.stop({ graceMs: 1000 })
    answers[0]?.({ ...none, jobs: ['a', 'b'], more: true })
    expect(await stopped).toBe(0)
    expect([given, signals.size, answers.length]).toEqual([['a', 'b'], 0, 1])
  })

  it('ends a rest, and a look that fails after it is no reason to go on', async () => {
    const rejects: ((error: Error) => void)[] = []
    const { clock, loop, looks } = world({ take: () => new Promise((_, reject) => rejects.push(reject)) })
    const stopped = loop.stop({ graceMs: 1000 })
    rejects[0]?.(new Error('away'))
    expect(await stopped).toBe(0)
    await clock.advance(60_000)
    expect(looks).toHaveLength(1)
  })
})
