/**
 * The real engine before the real server kit, and between them somebody who answers what he likes: gateways, portals,
 * broken proxies. He does not know what stands behind the key, so he gives no proof; what the client makes of it all
 * must be true of the server that counts its effects.
 */
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { isSettled } from '../../src/protocol/states.ts'
import { operation, shop, shopOrder } from '../support/shop.ts'
import { type Answer, type Call, type Tab, type World, world } from '../support/world.ts'
import { anyDamage, type Damage, damaged } from './junk.ts'
import { anyReply, end, headerValue, type Reply, responseOf, typed } from './replies.ts'
import { runs } from './runs.ts'
import { expectNoStrays } from './strays.ts'

const minute = 60_000
/** Minutes, so that a window ends within a run. */
const retentionMs = 4 * minute
const transitMs = 20_000

/** What becomes of one request. `reaches`: the server behind gets it; `lateMs`: after so long, inside the transit. */
type Fate =
  | { readonly is: 'served' }
  /** Done, and the result is to be seen elsewhere: a 303 from behind the key. */
  | { readonly is: 'seeOther' }
  | { readonly is: 'lost' | 'hangs'; readonly reaches: boolean; readonly lateMs: number }
  | { readonly is: 'foreign'; readonly reaches: boolean; readonly reply: Reply }
  | { readonly is: 'spoilt'; readonly how: Spoiling }

/** The server's own answer, with one thing wrong on its way. */
interface Spoiling {
  readonly header: string
  readonly value: string | null
  readonly damage: Damage | null
  readonly end: Reply['end']
}

const anySpoiling: fc.Arbitrary<Spoiling> = fc.record({
  header: fc.constantFrom(
    'idempotency-expires',
    'idempotent-replayed',
    'retry-after',
    'location',
    'content-type',
    'date',
  ),
  value: fc.option(headerValue, { freq: 2 }),
  damage: fc.option(anyDamage, { freq: 2 }),
  end,
})

const lateMs = fc.constantFrom(0, 0, 3000, 15_000)
const anyFate: fc.Arbitrary<Fate> = fc.oneof(
  fc.constantFrom<Fate>({ is: 'served' }, { is: 'seeOther' }),
  fc.record({ is: fc.constantFrom('lost' as const, 'hangs' as const), reaches: fc.boolean(), lateMs }),
  { weight: 3, arbitrary: fc.record({ is: fc.constant('foreign' as const), reaches: fc.boolean(), reply: anyReply }) },
  fc.record({ is: fc.constant('spoilt' as const), how: anySpoiling }),
)

const anyAct = fc.record({
  afterMs: fc.constantFrom(0, 1000, 20_000, 2 * minute, 6 * minute),
  what: fc.constantFrom(
    'cancel',
    'check',
    'retry',
    'abandon',
    'kill',
    'offline',
    'online',
    'finish',
    'finish',
    'refuse',
    'none',
  ),
})

/** How it goes on once all fates are spent. */
const anyEnding = fc.constantFrom<Fate>(
  { is: 'served' },
  { is: 'served' },
  { is: 'lost', reaches: false, lateMs: 0 },
  {
    is: 'foreign',
    reaches: true,
    reply: { status: 200, headers: { 'content-type': 'text/html' }, body: '<p>', end: 'whole' },
  },
  { is: 'foreign', reaches: true, reply: { status: 502, headers: {}, body: '', end: 'never' } },
  { is: 'foreign', reaches: false, reply: { status: 404, headers: {}, body: '', end: 'whole' } },
)

/** A refusal, or the code of one: who gives it has not let the request through to the key (section 6). */
function refuses({ status, body }: Reply): boolean {
  return (status >= 400 && status < 500 && status !== 408) || (status >= 300 && body.includes('idempotency_'))
}

function seeOther({ method }: Call, response: Response): Response {
  if (method !== 'POST' || response.status !== 201) return response
  return new Response(null, { status: 303, headers: [...response.headers, ['location', '/orders/9']] })
}

async function spoilt(response: Response, { header, value, damage, end: how }: Spoiling): Promise<Response> {
  const headers = new Headers(response.headers)
  if (value === null) headers.delete(header)
  // A sign of proof may get lost on its way; nobody makes one.
  else if (!header.startsWith('idempoten')) headers.set(header, value)
  const text = await response.text()
  let body = text
  if (damage !== null && text.startsWith('{')) body = JSON.stringify(damaged(JSON.parse(text), damage))
  return responseOf({ status: response.status, headers: Object.fromEntries(headers), body, end: how })
}

interface Meddled {
  readonly answer: Answer
  /** Delivers what is still on its way. */
  rest(): Promise<void>
}

function meddler({ clock }: World, behind: Answer, fates: readonly Fate[], ending: Fate): Meddled {
  let next = 0
  const underWay = new Set<() => Promise<unknown>>()

  async function reach(call: Call, request: Request, afterMs: number): Promise<void> {
    if (afterMs === 0) return void (await behind(call, request))
    const arrive = async (): Promise<void> => {
      if (underWay.delete(arrive)) await behind(call, request)
    }
    underWay.add(arrive)
    clock.timer(afterMs, () => void arrive())
  }

  return {
    async rest() {
      for (const arrive of [...underWay]) await arrive()
    },
    async answer(call, request) {
      const fate = fates[next++] ?? ending
      switch (fate.is) {
        case 'served':
          return behind(call, request)
        case 'seeOther':
          return seeOther(call, await behind(call, request))
        case 'lost':
        case 'hangs':
          if (fate.reaches) await reach(call, request, fate.lateMs)
          return fate.is === 'hangs' ? new Promise(() => {}) : Promise.reject(new TypeError('fetch failed'))
        case 'foreign':
          if (fate.reaches && !refuses(fate.reply)) await reach(call, request, 0)
          return responseOf(fate.reply)
        case 'spoilt':
          return spoilt(await behind(call, request), fate.how)
      }
    },
  }
}

it('P27, P42, P33: whatever is answered in between, the outcome is true of the server, nothing throws, nothing hangs', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(anyFate, { maxLength: 12 }),
      anyEnding,
      fc.constantFrom('at_once' as const, 'at_once' as const, 'as_task' as const, 'refuses' as const),
      fc.array(anyAct, { maxLength: 4 }),
      fc.boolean(),
      async (fates, ending, mode, acts, dated) => {
        const w = world()
        const { clock, network } = w
        const server = shop(clock, { retentionMs, transitMs, dated })
        server.take(mode)
        const between = meddler(w, server.answer, fates, ending)
        network.script(between.answer)
        const options = {
          operations: { [operation]: { retentionMs } },
          attemptTimeoutMs: 5000,
          transitMs,
          retry: { attempts: 20, capMs: 20_000 },
          waitMs: 20_000,
          maxBodyBytes: 4000,
        }
        let tab: Tab = w.tab(options)
        const calls: Promise<void>[] = []
        const submit = (): void => {
          const write = tab.fetch('orders', shopOrder('checkout:1'))
          calls.push(typed(write), typed(write.outcome()))
        }
        submit()
        for (const { afterMs, what } of acts) {
          await clock.advance(afterMs)
          const { intents } = tab.fetch
          if (what === 'cancel' || what === 'check' || what === 'retry' || what === 'abandon')
            calls.push(typed(intents[what]('checkout:1')))
          else if (what === 'kill') {
            tab.kill()
            calls.length = 0
            tab = w.tab(options)
            submit()
          } else if (what === 'offline' || what === 'online') tab.setOnline(what === 'online')
          else if (what !== 'none')
            for (const { key } of network.calls)
              if (key !== null) await server.finish(key, what === 'finish' ? 201 : 422)
        }
        await clock.advance(retentionMs + minute)
        await between.rest()
        for (const { key } of network.calls) if (key !== null) await server.finish(key)
        await clock.advance(minute)
        // Nobody who asked is left without a word.
        let open = calls.length
        for (const call of calls) void call.then(() => open--)
        await Promise.race([Promise.all(calls), clock.advance(0)])
        expect(open, 'calls that came to nothing').toBe(0)
        await expectNoStrays()
        const view = await tab.fetch.intents.get('checkout:1')
        expect(view).toBeDefined()
        const { state, inDoubt, dueAt } = view!
        const told = JSON.stringify(view?.history)
        expect(
          tab.notes.filter((note) => note.type === 'warning' && note.code === 'store_failed'),
          told,
        ).toEqual([])
        expect(server.total(), 'P54: once at most').toBeLessThanOrEqual(1)
        expect(new Set(network.writes().map(({ key }) => key)).size, 'P5: one key').toBeLessThanOrEqual(1)
        if (state === 'succeeded') expect(server.total(), `P42: it happened; ${told}`).toBe(1)
        if (['rejected', 'cancelled', 'conflicted'].includes(state))
          expect(server.total(), `P27: ${state}; ${told}`).toBe(0)
        expect(
          network.calls.filter(({ url }) => !url.startsWith('https://api.example.com/')),
          'P40',
        ).toEqual([])
        if (isSettled(state) || state === 'unknown') return
        expect(dueAt !== null || view!.detail === 'attempts', `P33: something is armed; ${state}; ${told}`).toBe(true)
        // In doubt and still at it after the window: only work that the server told of is waited for.
        if (inDoubt) expect(state, told).toBe('processing')
      },
    ),
    runs(20, 150),
  )
})
