import { readFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { build } from 'esbuild'
import type { SafeFetch } from 'samekey/fetch'
import type * as Mock from 'samekey/msw'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { root, sourceAliases } from '../../scripts/entries.ts'
import { describeInChromium, launchChromium } from '../support/chromium.ts'

/** The page of a web front end whose server is the mock. */
const program = `
  import { setupWorker } from 'msw/browser'
  import { samekey } from 'samekey/dialects'
  import { createFetch } from 'samekey/fetch'
  import * as msw from 'samekey/msw'

  const mock = msw.createMockServer({ baseUrl: location.origin })
  const worker = setupWorker(...msw.handlers(mock))
  const again = setupWorker(...msw.handlers(mock))
  const safeFetch = createFetch({
    dialect: samekey, baseUrl: mock.baseUrl, keysUrl: mock.keysUrl, anonymous: true, retry: { baseMs: 1 },
  })
  Object.assign(window, { msw, mock, worker, again, safeFetch })
  window.started = worker.start({ quiet: true, onUnhandledFrame: 'bypass' })
`

declare const window: {
  msw: typeof Mock
  mock: Mock.MockServer
  worker: { stop(): void }
  again: { start(options: object): Promise<unknown> }
  safeFetch: SafeFetch
  started: Promise<unknown>
}

async function site(): Promise<Server> {
  const { outputFiles } = await build({
    stdin: { contents: program, loader: 'ts', resolveDir: import.meta.dirname },
    bundle: true,
    write: false,
    format: 'esm',
    platform: 'browser',
    target: 'es2022',
    alias: sourceAliases,
  })
  const files: Record<string, [type: string, text: string]> = {
    '/': [
      'text/html',
      '<!doctype html><meta charset="utf-8"><title>Shop</title><script type="module" src="/page.js"></script>',
    ],
    '/page.js': ['text/javascript', outputFiles[0]?.text ?? ''],
    '/mockServiceWorker.js': [
      'text/javascript',
      readFileSync(join(root, 'node_modules/msw/lib/mockServiceWorker.js'), 'utf8'),
    ],
  }
  const server = createServer(({ url = '/' }, response) => {
    const [type, text] = files[url] ?? ['text/plain', 'not the mock']
    response.writeHead(url in files ? 200 : 404, { 'content-type': type }).end(text)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return server
}

describeInChromium('the mock in a browser’s service worker', () => {
  let browser: Awaited<ReturnType<typeof launchChromium>>
  let server: Server
  let page: Awaited<ReturnType<typeof browser.newPage>>

  beforeAll(async () => {
    ;[browser, server] = await Promise.all([launchChromium(), site()])
    page = await browser.newPage()
    await page.goto(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`)
    await page.waitForFunction(() => window.started)
    await page.evaluate(() => window.started.then(() => null))
  })

  afterAll(async () => {
    await browser?.close()
    server?.closeAllConnections()
    await new Promise((resolve) => server?.close(resolve))
  })

  it('F5: commit, then drop: one order, and the replay is delivered to the client', async () => {
    const seen = await page.evaluate(async () => {
      const { mock, msw, safeFetch } = window
      mock.faults.next(msw.commitThenDrop())
      const headers = { 'content-type': 'application/json' }
      const init = { method: 'POST', headers, body: '{"item":"tea"}', intent: 'checkout:1' }
      const response = await safeFetch('/orders', init)
      const sent = mock.requests.map(({ decided, delivered }) => [decided, delivered])
      return [response.status, await response.json(), mock.effects.total, sent]
    })
    expect(seen).toEqual([
      201,
      { id: 1, item: 'tea' },
      1,
      [
        ['executed', 'lost'],
        ['replayed', 'whole'],
      ],
    ])
  })

  it('B128: a network error before and after the commit, half of a cut body, and a stalled one that the mock ends', async () => {
    const seen = await page.evaluate(async () => {
      const { mock, msw } = window
      mock.reset()
      const { dropBeforeCommit, commitThenDrop, cutBody, hang } = msw
      mock.faults.next(dropBeforeCommit(), commitThenDrop(), cutBody(), hang('body'))
      const init = { method: 'POST', headers: { 'idempotency-key': 'k-1' }, body: 'tea' }
      const ends: unknown[] = []
      for (let n = 0; n < 4; n++) {
        const text = fetch('/orders', init).then((response) => {
          const read = response.text()
          if (n === 3) mock.disconnect()
          return read
        })
        ends.push(await text.catch((error: Error) => error.name), mock.effects.total)
      }
      return ends
    })
    expect(seen).toEqual(['TypeError', 0, 'TypeError', 1, 'TypeError', 1, 'TypeError', 1])
  })

  it('B127: a second worker of the same mock is refused by MSW, and the first one goes on', async () => {
    const seen = await page.evaluate(async () => {
      const { mock, again } = window
      mock.reset()
      const refused = await again.start({ quiet: true }).catch((error: Error) => error.name)
      const response = await fetch('/orders', { method: 'POST', headers: { 'idempotency-key': 'k-1' }, body: 'tea' })
      return [refused, response.status, mock.effects.total, mock.requests.length]
    })
    expect(seen).toEqual(['Invariant Violation', 201, 1, 1])
  })
})
