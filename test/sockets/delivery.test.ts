/** When a failed connection proves that nothing was delivered, and when it does not (section 6 row 1, H16, H17). */
import { describe, expect, it, onTestFinished } from 'vitest'
import { none } from '../../src/protocol/dialects/none.ts'
import { closedPort, honest, live, site } from '../support/sockets.ts'
import { order } from '../support/world.ts'

const globalDispatcher = Symbol.for('undici.globalDispatcher.1')

interface Dispatcher {
  dispatch(options: object, handler: object): boolean
  compose(interceptor: (dispatch: Dispatcher['dispatch']) => Dispatcher['dispatch']): Dispatcher
}

function useDispatcher(make: (own: Dispatcher) => object): void {
  const holder = globalThis as unknown as Record<symbol, Dispatcher>
  const own = holder[globalDispatcher]!
  holder[globalDispatcher] = make(own) as Dispatcher
  onTestFinished(() => {
    holder[globalDispatcher] = own
  })
}

/** A dispatcher of this name that sends through Node's own agent, and has nothing else in common with it. */
function through(own: Dispatcher, name: string): object {
  const classes: Record<string, new () => object> = {
    [name]: class {
      dispatch(options: object, handler: object): boolean {
        return own.dispatch(options, handler)
      }
    },
  }
  return new classes[name]!()
}

/** The same, of one family with Node's own agent, as undici's own proxy agents are. */
function kinOf(own: Dispatcher, name: string): object {
  const agent = own.constructor as new () => Dispatcher
  const base = Object.getPrototypeOf(agent) as new () => object
  const inner = Object.getOwnPropertySymbols(agent.prototype).find(({ description }) => description === 'dispatch')!
  const classes: Record<string, new () => object> = {
    [name]: class extends base {
      [inner](options: object, handler: object): boolean {
        return own.dispatch(options, handler)
      }
    },
  }
  return new classes[name]!()
}

describe('section 6, row 1: never delivered', () => {
  it('ECONNREFUSED with dialect none: nothing is in doubt, and it is sent once the server is there', async () => {
    const port = await closedPort()
    const { fetch, until } = live(`http://127.0.0.1:${port}`, { dialect: none })
    const write = fetch('/orders', order('checkout:1'))
    const failed = await until(({ because }) => because === 'neverDelivered')
    expect(failed).toMatchObject({ to: 'waiting', inDoubt: false })
    expect((await fetch.intents.get('checkout:1'))?.history).toContainEqual(
      expect.objectContaining({ event: 'neverDelivered', detail: expect.stringContaining('ECONNREFUSED') }),
    )
    const server = await site(port)
    const { handler, effects } = honest()
    server.script(handler)
    expect((await write).status).toBe(201)
    expect(effects.size).toBe(1)
    expect(server.received).toHaveLength(1)
  })

  it('ENOTFOUND with dialect none: the same, and cancel is for certain', async () => {
    const { fetch, until } = live('http://no-such-host.invalid', { dialect: none })
    await fetch('/orders', order('checkout:1')).stored
    const failed = await until(({ from }) => from === 'sending')
    expect(failed).toMatchObject({ because: 'neverDelivered', to: 'waiting', inDoubt: false })
    expect(await fetch.intents.cancel('checkout:1')).toMatchObject({ state: 'cancelled', handedOver: false })
  })

  it('the very first request of a process counts too', async () => {
    const { fetch, until } = live(`http://127.0.0.1:${await closedPort()}`, { dialect: none })
    await fetch('/orders', order('checkout:1')).stored
    expect(await until(({ from }) => from === 'sending')).toMatchObject({ because: 'neverDelivered' })
  })
})

describe('H16, H17, P30: no proof through anybody else’s transport', () => {
  const notOurs: Record<string, (own: Dispatcher) => object> = {
    'an agent with an interceptor': (own) =>
      own.compose((dispatch) => (options, handler) => dispatch(options, handler)),
    RetryAgent: (own) => through(own, 'RetryAgent'),
    ProxyAgent: (own) => kinOf(own, 'ProxyAgent'),
    EnvHttpProxyAgent: (own) => kinOf(own, 'EnvHttpProxyAgent'),
    'anything that calls itself Agent': (own) => through(own, 'Agent'),
  }
  for (const [name, make] of Object.entries(notOurs)) {
    it(`H17: ECONNREFUSED through ${name} is not known: unknown where the server does not de-duplicate`, async () => {
      const port = await closedPort()
      useDispatcher(make)
      const { fetch, until } = live(`http://127.0.0.1:${port}`, { dialect: none })
      await fetch('/orders', order('checkout:1')).stored
      const failed = await until(({ from }) => from === 'sending')
      expect(failed).toMatchObject({ because: 'ambiguous', to: 'unknown', inDoubt: true })
    })
  }

  it('P30: a fetch of the app’s own proves nothing, unless the app says so', async () => {
    const port = await closedPort()
    const own = (request: Request): Promise<Response> => globalThis.fetch(request)
    const cautious = live(`http://127.0.0.1:${port}`, { dialect: none, fetch: own })
    await cautious.fetch('/orders', order('checkout:1')).stored
    expect(await cautious.until(({ from }) => from === 'sending')).toMatchObject({
      because: 'ambiguous',
      to: 'unknown',
    })

    const declared = live(`http://127.0.0.1:${port}`, {
      dialect: none,
      fetch: own,
      transport: { provesNonDelivery: true },
    })
    await declared.fetch('/orders', order('checkout:1')).stored
    expect(await declared.until(({ from }) => from === 'sending')).toMatchObject({ because: 'neverDelivered' })
  })

  it('P30: a wrapped global fetch proves nothing', async () => {
    const port = await closedPort()
    const original = globalThis.fetch
    globalThis.fetch = (...args) => original(...args)
    onTestFinished(() => {
      globalThis.fetch = original
    })
    const { fetch, until } = live(`http://127.0.0.1:${port}`, { dialect: none })
    await fetch('/orders', order('checkout:1')).stored
    expect(await until(({ from }) => from === 'sending')).toMatchObject({ because: 'ambiguous', to: 'unknown' })
  })

  it('H16: it commits and answers 307 to a dead host: the failed second hop is no proof, and cancel says so', async () => {
    const dead = await closedPort()
    const server = await site()
    const { commit, effects } = honest()
    server.script((request, response) => {
      commit(request)
      response.writeHead(307, { location: `http://127.0.0.1:${dead}/orders` }).end()
    })
    const { fetch, until } = live(server.url, { dialect: none })
    await fetch('/orders', order('checkout:1')).stored
    expect(await until(({ from }) => from === 'sending')).toMatchObject({ because: 'ambiguous', to: 'unknown' })
    expect(effects.size).toBe(1)
    await expect(fetch.intents.cancel('checkout:1')).rejects.toMatchObject({ code: 'not_possible' })
  })

  it('H16: the same on its own origin, when the server is gone after it answered 307', async () => {
    const server = await site()
    const { commit, effects } = honest()
    server.script((request, response) => {
      commit(request)
      response.writeHead(307, { location: '/elsewhere', connection: 'close' })
      response.end()
      void server.close()
    })
    const { fetch, until } = live(server.url, { dialect: none })
    await fetch('/orders', order('checkout:1')).stored
    expect(await until(({ from }) => from === 'sending')).toMatchObject({ because: 'ambiguous', to: 'unknown' })
    expect(effects.size).toBe(1)
  })
})
