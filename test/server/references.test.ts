import { accepted, byReference, complete, json } from 'samekey/server'
import { describe, expect, it } from 'vitest'
import { memoryWorld } from './memory-world.ts'
import { idOf, shop } from './world.ts'

describe('P60: answers that are kept as a reference', () => {
  it('are read again for whoever asks today: replay, look-up and void give what is there now', async () => {
    let card = 'Visa 4242'
    const seen: string[] = []
    const {
      submit,
      lookup,
      void: voidKey,
    } = shop(memoryWorld(), {
      execute: () => byReference(json(201, { card }, { Location: '/cards/7' }), 'cards/7'),
      reread({ reference, answer, scope }) {
        seen.push(`${reference} ${answer.status} ${scope.principal}`)
        return JSON.stringify({ card })
      },
    })
    expect(await (await submit('k-1', {})).json()).toEqual({ card: 'Visa 4242' })
    expect(seen).toEqual([])
    card = 'Visa, replaced'
    const replay = await submit('k-1', {})
    expect([replay.status, replay.headers.get('location'), await replay.json()]).toEqual([201, '/cards/7', { card }])
    expect(replay.headers.get('idempotency-body')).toBeNull()
    for (const document of [await lookup('k-1'), await voidKey('k-1')]) {
      expect(await document.json()).toMatchObject({ status: 'succeeded', response: { body: JSON.stringify({ card }) } })
    }
    expect(new Set(seen)).toEqual(new Set(['cards/7 201 ann']))
  })

  it('P55: nothing is read for somebody who may not see it', async () => {
    let reads = 0
    const { submit, lookup } = shop(memoryWorld(), {
      execute: () => byReference(json(201, {}), 'cards/7'),
      authorize: ({ answer }) => answer === null,
      reread() {
        reads += 1
        return 'secret'
      },
    })
    await submit('k-1', {})
    expect([(await submit('k-1', {})).status, (await lookup('k-1')).status, reads]).toEqual([403, 403, 0])
  })

  it('what is no longer there is said to be omitted, and a reference never goes out', async () => {
    const { submit, lookup } = shop(memoryWorld(), {
      execute: () => byReference(json(201, {}), 'cards/7'),
      reread: () => Promise.resolve(null),
    })
    await submit('k-1', {})
    const replay = await submit('k-1', {})
    expect([replay.headers.get('idempotency-body'), await replay.text()]).toEqual(['omitted', ''])
    expect(await (await lookup('k-1')).text()).not.toContain('cards/7')
  })

  it('a reading that fails is 503, and executes nothing', async () => {
    const { submit, runs, events } = shop(memoryWorld(), {
      execute: () => byReference(json(201, {}), 'cards/7'),
      reread: () => Promise.reject(new Error('vault is down')),
    })
    await submit('k-1', {})
    expect([(await submit('k-1', {})).status, runs(), events.at(-1)?.kind]).toEqual([503, 1, 'entryFailed'])
  })

  it('without reread it is a mistake that rolls back', async () => {
    const { submit, events } = shop(memoryWorld(), { execute: () => byReference(json(201, {}), 'cards/7') })
    expect([(await submit('k-1', {})).status, events.at(-1)?.detail]).toEqual([500, expect.stringContaining('reread')])
  })

  it('P62: the result of accepted work may be one too', async () => {
    const world = memoryWorld()
    const { submit, lookup } = shop(world, { execute: () => accepted(), reread: () => new TextEncoder().encode('now') })
    await submit('k-1', {})
    expect(await (await lookup('k-1')).json()).toMatchObject({ status: 'processing' })
    await complete(world.store, idOf('k-1'), byReference(json(200, {}), 'cards/7'))
    expect(await (await lookup('k-1')).json()).toMatchObject({ status: 'succeeded', response: { body: 'now' } })
  })
})
