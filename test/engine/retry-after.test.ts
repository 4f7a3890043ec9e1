/** The server's own word on when to come back (P32, B62, B63). */
import { describe, expect, it } from 'vitest'
import { formatHttpDate } from '../../src/protocol/http-date.ts'
import {
  type Answer,
  answer,
  created,
  day,
  honestServer,
  order,
  problem,
  type TabOptions,
  world,
} from '../support/world.ts'

const minute = 60_000

/** How long after the first answer the second attempt came; null when it did not come within `within`. */
async function waitAfter(first: Answer, within: number, options: TabOptions = {}): Promise<number | null> {
  const { clock, network, tab, pass } = world()
  const server = honestServer()
  network.script(first, server.answer)
  const only = tab(options)
  await only.fetch('orders', order('checkout:1')).stored
  await pass(0)
  const start = clock.now()
  await pass(within)
  const [, second] = network.writes()
  if (second === undefined) return null
  expect(server.total()).toBe(1)
  return second.at - start
}

/** rfc850 and asctime forms of a time. */
function oldForms(ms: number): { rfc850: string; asctime: string } {
  const [, dayOfMonth, month, year, time] = formatHttpDate(ms).split(' ') as [string, string, string, string, string]
  const at = new Date(ms)
  const long = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday'][at.getUTCDay()]
  const spaced = String(at.getUTCDate()).padStart(2, ' ')
  return {
    rfc850: `${long}, ${dayOfMonth}-${month}-${year.slice(2)} ${time} GMT`,
    asctime: `${long?.slice(0, 3)} ${month} ${spaced} ${time} ${year}`,
  }
}

describe('P32: Retry-After is obeyed, in every form', () => {
  for (const [kind, make] of [
    ['429', (headers: Record<string, string>) => answer(429, headers)],
    ['503 without effect', (headers: Record<string, string>) => problem(503, 'idempotency_unavailable', headers)],
    ['an ambiguous 503', (headers: Record<string, string>) => answer(503, headers)],
    ['409 in progress', (headers: Record<string, string>) => problem(409, 'idempotency_in_progress', headers)],
  ] as const) {
    it(`P32: never earlier than the seconds of ${kind} say, and beyond our own cap`, async () => {
      const waited = await waitAfter(make({ 'retry-after': '120' }), 10 * minute, { retry: { capMs: 1000 } })
      expect(waited).toBeGreaterThanOrEqual(120_000)
      expect(waited).toBeLessThan(130_000)
    })
  }

  it('P32: an HTTP date in each of its three forms', async () => {
    const { clock } = world()
    const at = clock.now() + 5 * minute
    for (const date of [formatHttpDate(at), oldForms(at).rfc850, oldForms(at).asctime]) {
      const waited = await waitAfter(answer(429, { 'retry-after': date }), 20 * minute)
      expect(waited, date).toBeGreaterThanOrEqual(5 * minute)
      expect(waited, date).toBeLessThan(5 * minute + 5000)
    }
  })

  it('P32: a date is read against the server’s own Date, whatever this device’s clock says', async () => {
    for (const skew of [-3 * day, 3 * day]) {
      const serverNow = world().clock.now() + skew
      const headers = { date: formatHttpDate(serverNow), 'retry-after': formatHttpDate(serverNow + minute) }
      const waited = await waitAfter(answer(429, headers), 20 * minute)
      expect(waited).toBeGreaterThanOrEqual(minute)
      expect(waited).toBeLessThan(minute + 5000)
    }
  })

  for (const junk of [
    '-5',
    '',
    'abc',
    '5, 10',
    '1.5',
    '+7',
    '1e3',
    '0x10',
    '٣',
    'tomorrow',
    'Mon, 31 Feb 2027 00:00:00 GMT',
  ]) {
    it(`B63: ${JSON.stringify(junk)} is junk, and means normal back-off`, async () => {
      const waited = await waitAfter(answer(429, { 'retry-after': encodeURI(junk) === junk ? junk : 'junk' }), minute, {
        retry: { baseMs: 4000, capMs: 4000 },
      })
      expect(waited).toBeGreaterThanOrEqual(50)
      expect(waited).toBeLessThanOrEqual(7000)
    })
  }

  it('B63: 0 and a date long past mean our own pace, never a hot loop', async () => {
    for (const past of ['0', 'Wed, 21 Oct 2015 07:28:00 GMT']) {
      const { network, tab, pass } = world()
      network.script(answer(503, { 'retry-after': past }))
      await tab({ retry: { attempts: 1000 } }).fetch('orders', order('checkout:1')).stored
      await pass(minute)
      expect(network.writes().length).toBeGreaterThan(2)
      expect(network.writes().length).toBeLessThan(25)
    }
  })

  it('B63: a wait of 31 years is kept as one, and neither overflows nor comes back at once', async () => {
    expect(await waitAfter(answer(429, { 'retry-after': '1000000000' }), day / 12)).toBeNull()
    expect(await waitAfter(answer(429, { 'retry-after': '9'.repeat(400) }), day / 12)).toBeNull()
  })

  it('P32, P35: a wait beyond the window of an intent in doubt ends as unknown when the window ends, not when the wait does', async () => {
    const { network, tab, pass } = world()
    network.script(answer(503, { 'retry-after': String((30 * day) / 1000) }))
    const only = tab()
    await only.fetch('orders', order('checkout:1')).stored
    await pass(day)
    expect(await only.fetch.intents.get('checkout:1')).toMatchObject({ state: 'unknown', detail: 'window_over' })
    expect(network.writes()).toHaveLength(1)
  })

  it('P32: the wait is a due time on disk: it outlives the process, and a process of its own keeps it', async () => {
    const { clock, network, tab, pass } = world()
    const server = honestServer()
    network.script(answer(429, { 'retry-after': '7200' }), server.answer)
    const first = tab()
    await first.fetch('orders', order('checkout:1')).stored
    await pass(0)
    const told = clock.now() + 7200_000
    expect((await first.fetch.intents.get('checkout:1'))?.dueAt).toBeGreaterThanOrEqual(told)
    first.kill()
    await pass(60 * minute)
    tab()
    await pass(59 * minute)
    expect(network.writes()).toHaveLength(1)
    await pass(2 * minute)
    expect(network.writes()).toHaveLength(2)
    expect(network.writes()[1]?.at).toBeGreaterThanOrEqual(told)
    expect(server.total()).toBe(1)
  })

  it('P32: those that were told the same do not come back in the same instant', async () => {
    const { network, tab, pass } = world()
    network.script(problem(409, 'idempotency_in_progress', { 'retry-after': '60' }))
    const only = tab({ retry: { baseMs: 5000 } })
    for (const id of ['a', 'b', 'c', 'd']) await only.fetch('orders', order(id, { id })).stored
    await pass(0)
    network.script(created())
    await pass(2 * minute)
    const times = network
      .writes()
      .slice(4)
      .map(({ at }) => at)
    expect(times).toHaveLength(4)
    expect(new Set(times).size).toBe(4)
  })
})

describe('B62: long waits do not overflow', () => {
  it('B62: a back-off of 40 days is no hot loop', async () => {
    const forty = 40 * day
    expect(await waitAfter(answer(429), minute, { retry: { baseMs: forty, capMs: forty } })).toBeNull()
  })

  it('B62: waits that no timer can hold are refused by name, or waited for in parts', async () => {
    const { tab } = world()
    for (const wrong of [
      { retry: { baseMs: Number.POSITIVE_INFINITY } },
      { retry: { capMs: Number.NaN } },
      { attemptTimeoutMs: 40 * day },
    ]) {
      expect(() => tab(wrong)).toThrowError(expect.objectContaining({ code: 'config' }))
    }
  })

  it('B62: a caller may wait for 40 days, or for ever', async () => {
    for (const waitMs of [40 * day, Number.POSITIVE_INFINITY]) {
      const { network, tab, pass } = world()
      network.script(problem(409, 'idempotency_in_progress', { 'retry-after': '60' }), created({ id: 9 }))
      const only = tab({ operations: { orders: { match: () => true, retentionMs: 60 * day } } })
      const write = only.fetch('orders', { ...order('checkout:1'), waitMs })
      // The tab sleeps through what one timer can wait, so that not every second of it has to be lived.
      await pass(1)
      only.freeze()
      await pass(25 * day)
      only.thaw()
      await pass(5000)
      expect((await write).status).toBe(201)
    }
  })
})
