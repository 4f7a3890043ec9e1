import { idempotent, json, type MemoryTransaction, memoryServerStore } from 'samekey/server'
import { describe, expect, it, vi } from 'vitest'
import { memoryWorld } from './memory-world.ts'
import { serverPromises } from './promises.ts'
import { DAY_MS, gate, HOUR_MS, idOf, post, scope, shop } from './world.ts'

serverPromises('memory', () => Promise.resolve(memoryWorld()))

describe('memoryServerStore', () => {
  const newKey = {
    state: 'running',
    fingerprint: null,
    requestDigest: null,
    retentionMs: DAY_MS,
    graceMs: HOUR_MS,
  } as const

  it('shows its rows, committed ones only', async () => {
    const world = memoryWorld()
    const store = memoryServerStore({ clock: { now: world.now, timer: () => ({ cancel() {} }) } })
    const { opened, open } = gate()
    const running = store.begin({ waitMs: 0 }, async (unit) => {
      await unit.claim(idOf('k-1'), newKey)
      await opened
      return { commit: true, value: undefined }
    })
    expect(store.rows()).toEqual([])
    open()
    await running
    expect(store.rows()).toMatchObject([{ key: 'k-1', row: { state: 'running' } }])
  })

  it('works with the system clock too', async () => {
    const store = memoryServerStore()
    const { opened, open } = gate()
    const holder = store.begin({ waitMs: 0 }, async (unit) => {
      await unit.claim(idOf('k-1'), newKey)
      await opened
      return { commit: false, value: undefined }
    })
    const claim = () =>
      store.begin({ waitMs: 1 }, async (unit) => ({ commit: false, value: await unit.claim(idOf('k-1'), newKey) }))
    expect(await claim()).toEqual({ seen: 'busy' })
    open()
    await holder
    expect(await claim()).toMatchObject({ seen: 'inserted' })
  })

  it('a unit sees its own row, and does not wait for itself', async () => {
    const { store } = memoryWorld()
    const seen = await store.begin({ waitMs: Number.POSITIVE_INFINITY }, async (unit) => {
      const claims = [await unit.claim(idOf('k-1'), newKey), await unit.claim(idOf('k-1'), newKey)]
      const { row } = await unit.read(idOf('k-1'))
      return {
        commit: false,
        value: [...claims.map((claim) => claim.seen), row?.state, (await unit.read(idOf('k-2'))).row],
      }
    })
    expect(seen).toEqual(['inserted', 'taken', 'running', null])
  })

  it('a transaction that is over takes no more effects, and only a claimed key is finished', async () => {
    const world = memoryWorld()
    let leaked: MemoryTransaction | undefined
    await shop(world, {
      execute({ transaction }) {
        leaked = transaction
        throw new Error('x')
      },
    }).submit('k-1', {})
    expect(() => leaked?.onCommit(() => {})).toThrow(/over/)
    const answer = { status: 200, headers: [], body: { kind: 'omitted' } } as const
    const finishing = world.store.begin({ waitMs: 0 }, async (unit) => {
      await unit.finish(idOf('k-9'), answer, null)
      return { commit: true, value: undefined }
    })
    await expect(finishing).rejects.toThrow(/claimed/)
  })
})

describe('whoever only listens', () => {
  it('P28: changes nothing, whether it throws or promises and breaks it', async () => {
    const unhandled = vi.fn()
    process.on('unhandledRejection', unhandled)
    for (const report of [
      () => {
        throw new Error('log is down')
      },
      async () => {
        throw new Error('log is down')
      },
    ]) {
      const { handler } = shop(memoryWorld(), { report, execute: () => Promise.reject(new Error('x')) })
      expect((await handler(post('k-1', {}))).status).toBe(500)
    }
    await new Promise((resolve) => setImmediate(resolve))
    process.off('unhandledRejection', unhandled)
    expect(unhandled).not.toHaveBeenCalled()
  })
})

describe('the default report', () => {
  it('is one line on the console: damage is never silent', async () => {
    const said = vi.spyOn(console, 'error').mockImplementation(() => {})
    const thrown = 'no Error at all'
    const options = { store: memoryServerStore(), operation: 'orders.create', scope } as const
    const failing = idempotent({
      ...options,
      execute() {
        throw thrown
      },
    })
    await failing(post('k-1', {}))
    expect(said).toHaveBeenCalledWith(
      'samekey: executeFailed in orders.create key k-1 of acme/ann: Something was thrown that is no Error.',
      thrown,
    )
    const broken = idempotent({
      ...options,
      scope: () => ({ tenant: '', principal: '' }),
      execute: () => json(200, {}),
    })
    await broken(post('k-1', {}))
    expect(said).toHaveBeenLastCalledWith('samekey: entryFailed in orders.create: scope failed.', expect.any(Error))
  })
})
