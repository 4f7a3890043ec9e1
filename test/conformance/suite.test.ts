import { type ConformanceTools, type ServerBench, serverConformance } from 'samekey/testing'
import { describe, expect, it } from 'vitest'
import { memoryBench } from './in-memory.ts'

interface Declared {
  readonly group: string
  readonly title: string
  readonly run: () => Promise<void>
}

/** Declares the suite for a framework that only takes notes. */
function declaredFor(make: () => ServerBench, options?: Parameters<typeof serverConformance>[3]) {
  const tests: Declared[] = []
  const skipped: string[] = []
  let group = ''
  const note = (title: string, run: () => Promise<void>) => tests.push({ group, title, run })
  const tools: ConformanceTools = {
    describe(name, body) {
      group = name
      body()
    },
    it: Object.assign(note, { skip: (title: string) => skipped.push(title) }),
    expect,
  }
  const result = serverConformance('a server', make, tools, options)
  return { tests, skipped, result }
}

/** Titles of the cases of a group that do not hold. */
async function broken(make: () => ServerBench, group: string): Promise<string[]> {
  const titles: string[] = []
  for (const test of declaredFor(make).tests.filter((each) => each.group === group)) {
    await test.run().catch(() => titles.push(test.title))
  }
  return titles
}

type Fetch = ServerBench['fetch']
type Lie = (fetch: Fetch) => Fetch

const onAnswer =
  (change: (response: Response, body: string) => Response): Lie =>
  (fetch) =>
  async (path, init) => {
    const response = await fetch(path, init)
    const body = await response.clone().text()
    return change(response, body)
  }

const onHeaders = (change: (headers: Headers) => void): Lie =>
  onAnswer((response) => {
    const headers = new Headers(response.headers)
    change(headers)
    return new Response(response.body, { status: response.status, headers })
  })

const onBody = (change: (body: string, response: Response) => string): Lie =>
  onAnswer((response, body) => {
    const { status, headers } = response
    return new Response(body === '' ? null : change(body, response), { status, headers })
  })

const onRequest =
  (change: (headers: Headers) => void): Lie =>
  (fetch) =>
  (path, init) => {
    const headers = new Headers(init.headers)
    change(headers)
    return fetch(path, { ...init, headers })
  }

const isReplay = ({ headers }: Response) => headers.has('idempotent-replayed')
let lastKey = 0

const lies: readonly [lie: string, group: string, found: RegExp, Lie][] = [
  [
    'it executes every request',
    'one effect, one answer',
    /^F7, B113/,
    onRequest((headers) => {
      lastKey += 1
      if (headers.has('idempotency-key')) headers.set('idempotency-key', `fresh-${lastKey}`)
    }),
  ],
  [
    'it never proves anything',
    'what is remembered',
    /^P56: a definite/,
    onHeaders((headers) => headers.delete('idempotency-expires')),
  ],
  [
    'it proves everything',
    'on the wire',
    /^section 16/,
    onHeaders((headers) => headers.set('idempotency-expires', 'Thu, 31 Dec 2026 23:59:59 GMT')),
  ],
  [
    'it does not mark replays',
    'one effect, one answer',
    /^P55/,
    onHeaders((headers) => headers.delete('idempotent-replayed')),
  ],
  [
    'it gives out cookies again',
    'one effect, one answer',
    /Set-Cookie/,
    onAnswer((response) => {
      if (isReplay(response)) response.headers.append('set-cookie', 'seen=1')
      return response
    }),
  ],
  [
    'its replays are spelled anew',
    'one effect, one answer',
    /^P55/,
    onBody((body, response) => (isReplay(response) ? `${body} ` : body)),
  ],
  [
    'its documents have no digest',
    'look-up and void',
    /H37/,
    onBody((body) => body.replace('requestDigest', 'digest')),
  ],
  [
    'its problems share a type',
    'on the wire',
    /of its own$/,
    onBody((body) => body.replace(/urn:samekey:problem:[a-z-]+/, 'about:blank')),
  ],
  [
    'it knows no age',
    'older than the server remembers',
    /after the reaper/,
    onRequest((headers) => {
      headers.delete('idempotency-age')
      headers.delete('idempotency-since')
    }),
  ],
  ['it ignores the tag', 'whose key it is', /^H5/, onRequest((headers) => headers.delete('idempotency-scope'))],
  [
    'it has no CORS lines',
    'on the wire',
    /^P41/,
    onHeaders((headers) => headers.delete('access-control-expose-headers')),
  ],
  [
    'its voids are always granted',
    'look-up and void',
    /after the request/,
    onBody((body, { status }) => (status === 200 ? body.replace('"succeeded"', '"voided"') : body)),
  ],
  [
    'its work is always done',
    'accepted work',
    /^P64/,
    onBody((body) => body.replace(/"(failed|failed_retryable|unknown)"/, '"succeeded"')),
  ],
]

describe('the suite', () => {
  it.each(lies)('notices that %s', async (_, group, found, lie) => {
    const lying = () => {
      const bench = memoryBench()
      return { ...bench, fetch: lie(bench.fetch) }
    }
    expect(await broken(lying, group)).toEqual(expect.arrayContaining([expect.stringMatching(found)]))
  })

  it('notices an effect too many, whatever the answers say', async () => {
    const busy = () => {
      const bench = memoryBench()
      return { ...bench, effects: async () => 2 * (await bench.effects()) }
    }
    expect(await broken(busy, 'what is remembered')).toEqual(
      expect.arrayContaining([expect.stringMatching(/^B116/), expect.stringMatching(/^P56: after it was declined/)]),
    )
  })

  it('notices a permission that is asked once', async () => {
    const trusting = () => ({ ...memoryBench(), revoke() {} })
    expect(await broken(trusting, 'whose key it is')).toHaveLength(5)
  })

  it('skips by name what a bench says that it cannot do, and fails what it does not say', async () => {
    const plain = (): ServerBench => {
      const { fetch, effects, close } = memoryBench()
      return { fetch, effects, close }
    }
    const all = declaredFor(plain)
    expect(all.result).toEqual({ cases: all.tests.length, skipped: [] })
    const [unsaid] = await broken(plain, 'what is remembered')
    expect(unsaid).toMatch(/^F7, F8/)

    const honest = declaredFor(plain, { without: ['passMs', 'revoke', 'hold', 'work', 'damage'] })
    expect(honest.result).toEqual({ cases: honest.tests.length, skipped: honest.skipped })
    expect(honest.skipped.length + honest.tests.length).toBe(all.tests.length)
    expect(honest.skipped).toContain('F21, P57: and the reaper leaves it to the operator (needs damage, passMs)')
    for (const { run } of honest.tests.filter(({ group }) => group === 'how a key is written')) await run()
  })
})
