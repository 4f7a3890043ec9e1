/** Whether each fault of the network is the one that its name says: seen from the server, and from the client. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { chance } from '../support/chance.ts'
import { until } from '../support/until.ts'
import { type Fate, type Network, type NetworkFault, startNetwork } from './network.ts'
import { freePorts } from './ports.ts'

let arrived = 0
const server = createServer(async (request, response) => {
  for await (const _ of request);
  arrived += 1
  response.end('an answer of some length')
})
let fate: Fate = 'pass'
let isUp = true
let network: Network

beforeAll(async () => {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const [own = 0] = await freePorts(1, 0.5)
  const rigged = { ...chance(1), weighted: () => fate as never }
  network = await startNetwork(own, () => (isUp ? port : null), rigged)
})

afterAll(async () => {
  await network.close()
  server.close()
  server.closeAllConnections()
})

/** Whoever is to hear nothing need not wait for long; whoever is to hear something is waited for. */
const silenceMs = 300
const patienceMs = 20_000

/** What a client hears, or why it hears nothing. */
async function ask(waitMs = patienceMs): Promise<string> {
  const init = { method: 'POST', body: 'a request of some length', signal: AbortSignal.timeout(waitMs) }
  try {
    return await (await fetch(network.url, init)).text()
  } catch (error) {
    const { name, cause } = error as { readonly name: string; readonly cause?: { readonly code?: string } }
    return name === 'TimeoutError' ? 'silence' : (cause?.code ?? name)
  }
}

/** How many copies arrive, in the end. */
test.for<[Fate, heard: string | RegExp, copies: number]>([
  ['pass', 'an answer of some length', 1],
  ['delay', 'an answer of some length', 1],
  ['reset before', /ECONNRESET|UND_ERR_SOCKET/, 0],
  ['reset within', /ECONNRESET|UND_ERR_SOCKET/, 0],
  ['answer lost', /ECONNRESET|UND_ERR_SOCKET/, 1],
  ['answer cut', /ECONNRESET|UND_ERR_SOCKET/, 1],
  ['black hole', 'silence', 0],
  ['half-open', 'silence', 1],
  ['late copy', 'silence', 1],
])('%s', async ([next, heard, copies]) => {
  const before = arrived
  fate = next
  expect(await ask(heard === 'silence' ? silenceMs : patienceMs)).toMatch(heard)
  fate = 'pass'
  await until('all copies arrived', () => arrived - before >= copies)
  // Whatever else was under way has arrived before this one.
  expect(await ask()).toBe('an answer of some length')
  expect(arrived - before).toBe(copies + 1)
  if (next !== 'pass') expect(network.counts[next satisfies NetworkFault]).toBe(1)
})

test('connections are refused, and accepted again at the same port', async () => {
  network.setOpen(false)
  // As those of a server that dies: only new connections are refused.
  server.closeAllConnections()
  await until('they are refused', async () => (await ask()) === 'ECONNREFUSED')
  network.setOpen(true)
  await until('they are accepted', async () => (await ask()) === 'an answer of some length')
  expect(network.counts.refused).toBe(1)
})

test('a connection is reset where no server is left', async () => {
  isUp = false
  server.closeAllConnections()
  await until('no connection is left', async () => /ECONNRESET|UND_ERR_SOCKET/.test(await ask()))
  isUp = true
  // The first one may still be given a connection that is about to be noticed as gone.
  await until('it answers again', async () => (await ask()) === 'an answer of some length')
})

test('once it is healed, everything passes, and what was late has arrived', async () => {
  const before = arrived
  fate = 'late copy'
  expect(await ask(silenceMs)).toBe('silence')
  await network.heal()
  expect(arrived - before).toBe(1)
  expect(await ask()).toBe('an answer of some length')
})
