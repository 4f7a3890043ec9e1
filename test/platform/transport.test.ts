import { createServer } from 'node:net'
import { afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { systemTransport } from '../../src/platform/transport.ts'

const dispatcher = Symbol.for('undici.globalDispatcher.1')
const globals = globalThis as { [name: symbol]: object | undefined }

/** A port of this machine on which nobody listens. */
async function closedPort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as { port: number }
  await new Promise((resolve) => server.close(resolve))
  return port
}

/** Node loads its agent at the first fetch; this one is refused. */
async function refusedOnce(): Promise<unknown> {
  const address = `http://127.0.0.1:${await closedPort()}/`
  return systemTransport()
    .fetch(new Request(address))
    .catch((error: unknown) => error)
}

describe('section 6, row 1: what may be taken as proof that nothing was delivered', () => {
  let own: object
  let refusal: unknown

  beforeAll(async () => {
    refusal = await refusedOnce()
    own = globals[dispatcher]!
  })

  afterEach(() => {
    globals[dispatcher] = own
  })

  it("Node's own fetch over its own plain agent proves it", () => {
    expect(refusal).toMatchObject({ cause: { code: 'ECONNREFUSED' } })
    expect(systemTransport().provesNonDelivery).toBe(true)
  })

  it('H17, P30: an agent of another kind, such as one that retries or a proxy, proves nothing', () => {
    class RetryAgent {
      dispatch(): void {}
    }
    globals[dispatcher] = new RetryAgent()
    expect(systemTransport().provesNonDelivery).toBe(false)
    // An agent with interceptors is of its own class, and answers with another dispatch.
    globals[dispatcher] = Object.create(own, { dispatch: { value: () => true } })
    expect(systemTransport().provesNonDelivery).toBe(false)
    globals[dispatcher] = undefined
    expect(systemTransport().provesNonDelivery).toBe(false)
  })

  it('P30: a wrapped fetch proves nothing, and neither does that of a page', () => {
    const real = globalThis.fetch
    vi.stubGlobal('fetch', (...args: Parameters<typeof fetch>) => real(...args))
    expect(systemTransport().provesNonDelivery).toBe(false)
    vi.unstubAllGlobals()
    vi.stubGlobal('document', {})
    expect(systemTransport().provesNonDelivery).toBe(false)
  })

  it("P30: the app's own fetch proves what the app says, and by default nothing", () => {
    const theirs = async (): Promise<Response> => new Response()
    expect(systemTransport(theirs)).toMatchObject({ provesNonDelivery: false, repeats: false })
    expect(systemTransport(theirs, { provesNonDelivery: true, repeats: true })).toMatchObject({
      provesNonDelivery: true,
      repeats: true,
    })
    expect(systemTransport(undefined, { provesNonDelivery: false }).provesNonDelivery).toBe(false)
  })

  it("the platform's fetch is looked up at each call, so that a test or an app may replace it later", async () => {
    const transport = systemTransport()
    vi.stubGlobal('fetch', async () => new Response('replaced'))
    expect(await (await transport.fetch(new Request('https://example.com'))).text()).toBe('replaced')
  })
})
