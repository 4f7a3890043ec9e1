/**
 * The promise of the whole: in thousands of schedules of faults, every invariant holds. And the schedules are worth it:
 * all that can go wrong does, and all that client and server can do about it is done.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { isSettled, rank, type StateName } from '../../src/protocol/states.ts'
import { seedOf } from '../support/chance.ts'
import { bundle } from './bundle.ts'
import { campaign } from './campaign.ts'
import { generate } from './generate.ts'
import { run } from './run.ts'
import type { Fate, ServerFault, Step, StoreFault, WorkerFault } from './schedule.ts'

/** What the server did, by what it says: counted only here. */
const said = vi.hoisted(() => new Map<string, number>())

vi.mock('./server.ts', async (original) => {
  const real = await original<typeof import('./server.ts')>()
  const count = (name: string): void => void said.set(name, (said.get(name) ?? 0) + 1)
  const createServer: typeof real.createServer = (setting, time, truth, watch) => {
    const executed = (): void => {
      count('executed')
      watch.executed()
    }
    const server = real.createServer(setting, time, truth, { ...watch, executed })
    return {
      ...server,
      async handle(request) {
        const answer = await server.handle(request)
        if (answer.headers.has('idempotent-replayed')) count('replayed')
        const text = await answer.clone().text()
        for (const [, code = ''] of text.matchAll(/"(?:code|status)":"(\w+)"/g)) count(code)
        return answer
      },
    }
  }
  return { ...real, createServer }
})

/** A slow machine is no reason to fail. */
const timeout = 30 * 60_000

/** A conflict takes somebody who uses one key for two requests; a client that is right does not, and chance seldom makes it. */
const isRare: ReadonlySet<StateName> = new Set(['conflicted'])

test('20,000 schedules break no invariant, and intents end in every way that there is', { timeout }, async () => {
  const folder = await mkdtemp(join(tmpdir(), 'samekey-sim-'))
  try {
    const program = join(folder, 'program.mjs')
    await bundle(program)
    const { found, schedules, ends } = await campaign({ program, schedules: 20_000, seed: 1, jobs: 2, most: 5 })
    expect(found).toEqual([])
    expect(schedules).toBe(20_000)
    const states = (Object.keys(rank) as StateName[]).filter((state) => isSettled(state) && !isRare.has(state))
    expect(Object.keys(ends)).toEqual(expect.arrayContaining(states))
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
})

// Written as records, so that the compiler misses none. False: only in schedules that a person wrote, for one hole each.
const kinds: Record<Step['do'], boolean> = {
  pass: true,
  jump: true,
  sleep: true,
  open: true,
  kill: true,
  'kill-at': true,
  close: true,
  freeze: true,
  'freeze-at': true,
  thaw: true,
  throttle: true,
  show: true,
  submit: true,
  abort: true,
  cancel: true,
  retry: true,
  check: true,
  acknowledge: true,
  forget: true,
  skip: true,
  abandon: true,
  'abandon-by-force': true,
  resolve: true,
  resume: true,
  'sign-in': true,
  'sign-in-unseen': true,
  'sign-out': true,
  'expire-token': true,
  'renew-token': true,
  revoke: true,
  allow: true,
  network: true,
  partition: true,
  heal: true,
  hint: true,
  store: true,
  'lose-storage': true,
  damage: true,
  'renew-format': true,
  server: true,
  worker: true,
  list: true,
  'send-unnamed': false,
  'choose-account': false,
  deploy: false,
}
const fates: Record<Fate, boolean> = {
  refused: true,
  'request-lost': true,
  'request-late': true,
  'answer-lost': true,
  'answer-cut': true,
  'answer-late': true,
  'black-hole': true,
  'black-hole-after': true,
  twice: true,
  portal: true,
  'foreign-json': true,
  'proxy-502': true,
  'proxy-504': true,
  'gateway-401': true,
  'gateway-403': true,
  'gateway-404': true,
  'gateway-413': true,
  'gateway-429': true,
  'gateway-500': true,
  'gateway-503': true,
  'redirect-away': true,
  'redirect-here': true,
  'redirect-after': true,
  'refused-after': true,
  'login-page': true,
}
const faults: Record<StoreFault | ServerFault | WorkerFault, boolean> = {
  fails: true,
  full: true,
  'unsure-written': true,
  'unsure-lost': true,
  'unsure-late': true,
  slow: true,
  gone: true,
  'crash-before-commit': true,
  'crash-after-commit': true,
  throws: true,
  unavailable: true,
  accepts: true,
  dies: true,
  'dies-after-step': true,
  sleeps: true,
  refuses: true,
  'leaves-unknown': true,
  'loses-call': false,
  'dies-after-call': false,
}

test('the schedules hold every kind of step, of fate and of fault, each more than once', () => {
  const counts = new Map<string, number>()
  const count = (name: string): void => void counts.set(name, (counts.get(name) ?? 0) + 1)
  for (let index = 0; index < 20_000; index++)
    for (const step of generate(seedOf(1, index)).steps) {
      count(`step ${step.do}`)
      if (step.do === 'network') for (const fate of step.fates) count(`fate ${fate}`)
      if ('fault' in step) count(`fault ${step.fault}`)
    }
  const all = [['step', kinds] as const, ['fate', fates] as const, ['fault', faults] as const].flatMap(([what, of]) =>
    Object.entries(of).flatMap(([name, isGenerated]) => (isGenerated ? [`${what} ${name}`] : [])),
  )
  expect(all.filter((name) => (counts.get(name) ?? 0) < 10)).toEqual([])
  expect([...counts.keys()].filter((name) => !all.includes(name))).toEqual([])
})

test('the schedules are no empty talk: things are done, replayed, voided, looked up, accepted, forgotten', {
  timeout,
}, async () => {
  said.clear()
  for (let index = 0; index < 1000; index++) await run(generate(seedOf(1, index)))
  const words = ['executed', 'replayed', 'voided', 'absent', 'processing', 'unknown', 'idempotency_expired']
  expect(words.filter((word) => (said.get(word) ?? 0) === 0)).toEqual([])
  expect(said.get('executed')).toBeGreaterThan(500)
})
