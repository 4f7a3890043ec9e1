import { describe, expect, it } from 'vitest'
import { type Answer, broken, commitThenDrop, type HonestServer, honestServer, order, world } from '../support/world.ts'

/**
 * The process dies at every port operation of a whole life (store calls and sends), before it takes effect and after,
 * and is started again on the same store. The list of points is whatever the engine really does, not typed by hand.
 */
describe('P17, P20, B21, F2, F6: killed at every step and restarted', () => {
  type Script = (server: HonestServer) => Answer[]
  const stories: Record<string, Script> = {
    'all goes well': (server) => [server.answer],
    'the answer is lost once': (server) => [commitThenDrop(server), server.answer],
    'the request is lost, then the answer': (server) => [broken(), commitThenDrop(server), server.answer],
  }

  for (const [story, script] of Object.entries(stories)) {
    for (const when of ['before', 'after'] as const) {
      it(`${story}: dying ${when} any operation leaves at most one order, one key, and no lost intent`, async () => {
        const points = await operationsOfALife(script)
        expect(points).toBeGreaterThan(8)
        for (let operation = 1; operation <= points; operation++) {
          const { clock, network, tab } = world()
          const server = honestServer()
          network.script(...script(server))
          const first = tab({ dieAt: { operation, when } })
          const write = first.fetch('orders', order('checkout:1'))
          let stored = false
          void write.stored.then(() => {
            stored = true
          })
          await clock.advance(60_000)

          const second = tab()
          await clock.advance(120_000)
          const at = `${story}, ${when} operation ${operation}`
          const view = await second.fetch.intents.get('checkout:1')
          const keys = new Set(network.writes().map(({ key }) => key))
          if (stored) expect(view, `lost: ${at}`).toBeDefined()
          if (view === undefined) expect(server.total(), `sent without a record: ${at}`).toBe(0)
          else {
            expect(view.state, at).toBe('succeeded')
            expect(server.total(), `orders: ${at}`).toBe(1)
            expect([...keys], `keys: ${at}`).toEqual([view.key])
          }
          expect(new Set(network.writes().map(({ body }) => body)).size, `bodies: ${at}`).toBeLessThanOrEqual(1)
        }
      })
    }
  }

  async function operationsOfALife(script: Script): Promise<number> {
    const { clock, network, tab } = world()
    network.script(...script(honestServer()))
    const only = tab()
    await Promise.all([only.fetch('orders', order('checkout:1')), clock.advance(60_000)])
    return only.operations()
  }
})
