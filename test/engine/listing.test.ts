import { describe, expect, it } from 'vitest'
import { answer, order, world } from '../support/world.ts'

describe('P42, P45: a list is complete, page by page', () => {
  it('every intent is on exactly one page, in order (no intent hidden behind a limit)', async () => {
    const { clock, tab } = world()
    const only = tab()
    for (let n = 0; n < 25; n++) void only.fetch('orders', order(`checkout:${n}`, { n })).catch(() => {})
    await clock.advance(60_000)

    const seen: string[] = []
    let after: number | null = 0
    for (let pages = 0; after !== null; pages++) {
      expect(pages).toBeLessThan(5)
      const page: { intents: readonly { id: string }[]; next: number | null } = await only.fetch.intents.list({
        limit: 10,
        after,
      })
      expect(page.intents.length).toBeLessThanOrEqual(10)
      seen.push(...page.intents.map(({ id }) => id))
      after = page.next
    }
    expect(seen).toEqual(Array.from({ length: 25 }, (_, n) => `checkout:${n}`))
  })

  it('a filtered page goes on behind what was filtered out', async () => {
    const { clock, network, tab } = world()
    const only = tab()
    for (let n = 0; n < 12; n++) {
      network.script(
        n % 4 === 3
          ? answer(422, {}, '{}')
          : (call) =>
              Response.json(
                {},
                { status: 201, headers: { 'idempotency-expires': new Date(call.at + 86_400_000).toUTCString() } },
              ),
      )
      await Promise.all([only.fetch('orders', order(`checkout:${n}`, { n })), clock.advance(1000)])
    }
    const first = await only.fetch.intents.list({ states: ['rejected'], limit: 2 })
    expect(first.intents.map(({ id }) => id)).toEqual(['checkout:3', 'checkout:7'])
    const second = await only.fetch.intents.list({ states: ['rejected'], limit: 2, after: first.next ?? 0 })
    expect(second.intents.map(({ id }) => id)).toEqual(['checkout:11'])
    expect(second.next).toBeNull()
  })
})
