/** What each step of a schedule does to the world. */
import type { SafeFetch } from '../../src/fetch.ts'
import type { Content, IntentName, Step, TabNumber } from './schedule.ts'
import { operations } from './server.ts'
import { intentHeader, origin, type Seat, type World } from './world.ts'

/** A tab looks every minute, and every two where its timers are throttled, ms. */
const noticedWithinMs = 130_000

/** Name of the lane of `till-…` intents. */
const lane = 'till'

/** Does one step; resolves when time has passed, where it is about that. */
export async function perform(world: World, step: Step): Promise<void> {
  const { time, watch, network, server } = world
  switch (step.do) {
    case 'pass':
      return time.advance(step.ms)
    case 'sleep':
      watch.slept()
      return time.sleep(step.ms)
    case 'jump':
      watch.clockJumped()
      time.jump(step.ms)
      // Whoever is there notices within two looks. Where nobody is, no age can be known (section 18).
      if (step.ms < 0 && isSomebodyAwake(world)) await time.advance(noticedWithinMs)
      if (step.ms < 0 && !isSomebodyAwake(world)) watch.clockUnseen()
      return
    case 'open':
      return void world.open(step.tab, step.client)
    case 'sign-in':
      return world.signIn(step.user, [...world.seats.values()])
    case 'sign-in-unseen': {
      const seat = world.seats.get(step.tab)
      return world.signIn(step.user, seat === undefined ? [] : [seat])
    }
    case 'sign-out':
      return world.signIn(null, [...world.seats.values()])
    case 'expire-token':
      return server.expire(step.user)
    case 'renew-token':
      return world.renew(step.user)
    case 'choose-account':
      return world.chooseAccount(step.account)
    case 'deploy':
      return server.deploy()
    case 'revoke':
      return server.permit(step.user, false)
    case 'allow':
      return server.permit(step.user, true)
    case 'network':
      return network.fate(step.fates)
    case 'partition':
      return network.partition(true)
    case 'heal':
      return network.partition(false)
    case 'hint':
      return world.hint(step.online)
    case 'lose-storage':
      return world.loseStorage()
    case 'damage':
    case 'renew-format':
      return spoil(world, step.intent, step.do === 'damage')
    case 'server':
      return server.fault(step.fault)
    case 'worker':
      return server.workerFault(step.fault)
    default: {
      const seat = world.seats.get(step.tab)
      if (seat === undefined || seat.tab.isDead || seat.closed) return
      return inTab(world, seat, step)
    }
  }
}

type InTab = Extract<Step, { readonly tab: TabNumber }>

async function inTab(world: World, seat: Seat, step: InTab): Promise<void> {
  const { tab, store } = seat
  const { watch, told } = world
  switch (step.do) {
    case 'kill':
      return tab.kill()
    case 'kill-at':
      watch.unreliable(tab.holder)
      return tab.killAt(step.operation, step.when)
    case 'close':
      seat.closed = true
      watch.unreliable(tab.holder)
      return void tab.fetch.stop().catch((error: unknown) => watch.threw(error, null))
    case 'freeze':
      watch.unreliable(tab.holder)
      return tab.freeze()
    case 'freeze-at':
      watch.unreliable(tab.holder)
      return tab.freezeAt(step.operation, step.when ?? 'before')
    case 'thaw':
      return tab.thaw()
    case 'throttle':
      return tab.throttle(true)
    case 'show':
      tab.throttle(false)
      return tab.wake('visible')
    case 'store':
      watch.unreliable(tab.holder)
      return store.plant(step.fault, step.operation)
    case 'abort':
      seat.waiting.abort()
      seat.waiting = new AbortController()
      return
    case 'submit':
      if (tab.isFrozen) return
      submit(world, seat, step)
      if (step.twice === true) submit(world, seat, step)
      return
    case 'send-unnamed':
      return sendUnnamed(world, seat, step.what)
    case 'resume':
      return act(world, seat, null, (client) => client.lanes.resume(lane))
    case 'list': {
      const who = world.whom(seat)
      return act(world, seat, null, async ({ intents }) => {
        const { intents: found } = await intents.list()
        watch.listed(
          found.map(({ key }) => key),
          who,
        )
      })
    }
    case 'cancel':
      return act(world, seat, step.intent, ({ intents }) => intents.cancel(step.intent))
    case 'retry':
      return act(world, seat, step.intent, ({ intents }) => intents.retry(step.intent))
    case 'check':
      return act(world, seat, step.intent, ({ intents }) => intents.check(step.intent))
    case 'acknowledge':
      return act(world, seat, step.intent, ({ intents }) => intents.acknowledge(step.intent))
    case 'forget': {
      const who = world.whom(seat)
      if (who !== null) watch.forgetAsked(step.intent, who)
      return act(world, seat, step.intent, ({ intents }) => intents.forget(step.intent))
    }
    case 'abandon':
      return act(world, seat, step.intent, ({ intents }) => intents.abandon(step.intent))
    case 'abandon-by-force':
      watch.forceAsked(step.intent)
      return act(world, seat, step.intent, ({ intents }) => intents.abandon(step.intent, undefined, { force: true }))
    case 'skip':
      return act(world, seat, step.intent, ({ lanes }) => lanes.skip(step.intent))
    case 'resolve': {
      const happened = world.truth.effects.some(
        ({ intent, user }) => intent === step.intent && user === (seat.user ?? world.user()),
      )
      told(`the books say that ${step.intent} ${happened ? 'happened' : 'did not happen'}`)
      return act(world, seat, step.intent, ({ intents }) =>
        intents.resolve(step.intent, happened ? 'succeeded' : 'did_not_happen'),
      )
    }
    case 'open':
    case 'sign-in-unseen':
      return
  }
}

/** A person does something; whatever it comes to, it is typed, and a dead tab says nothing more. */
function act(world: World, { tab }: Seat, intent: string | null, run: (client: SafeFetch) => Promise<unknown>): void {
  // Nobody can click in a page that stands still.
  if (tab.isFrozen) return
  run(tab.fetch).catch((error: unknown) => {
    world.told(`${tab.holder}: ${error instanceof Error ? error.message : String(error)}`)
    world.watch.threw(error, intent)
  })
}

function submit(world: World, seat: Seat, step: Extract<InTab, { readonly do: 'submit' }>): void {
  const { tab, waiting } = seat
  const { watch, told, setting, time } = world
  const { intent, content, again, sendBeforeMs, amount } = step
  const { path, method, operation, named } = targetOf(intent)
  const handle = tab.fetch(`${origin}${path}`, {
    method,
    headers: { 'content-type': 'application/json', accept: 'application/json', [intentHeader]: intent },
    body: bodyOf(intent, content, amount),
    ...(setting.identity === 'cookie' && { credentials: 'include' }),
    intent,
    operation,
    signal: waiting.signal,
    waitMs: 15_000,
    ...(named && { lane }),
    ...(again === true && { again }),
    ...(sendBeforeMs !== undefined && { sendBefore: time.device.now() + sendBeforeMs }),
    ...(setting.keys === 'derived' && { key: { derived: true, since: world.since(intent) } }),
    ...(setting.keys === 'given' && { key: { value: `kept-${intent}`, since: world.since(intent) } }),
  })
  handle.stored.then(
    ({ key }) => tab.isDead || watch.stored(key, intent),
    () => {},
  )
  handle.outcome().then(
    (outcome) => {
      if (tab.isDead) return
      told(`${tab.holder}: ${intent} is ${outcome.state}`)
      watch.told(outcome, content)
    },
    (error: unknown) => {
      if (tab.isDead) return
      told(`${tab.holder}: ${intent} ${error instanceof Error ? error.message : String(error)}`)
      watch.threw(error, intent)
    },
  )
}

function bodyOf(intent: string, content: Content, amount: string | undefined): string {
  const body = JSON.stringify({ intent, content })
  return amount === undefined ? body : `${body.slice(0, -1)},"amount":${amount}}`
}

/** Whoever sends it deals with what comes of it. */
function sendUnnamed(world: World, { tab }: Seat, what: 'order' | 'password'): void {
  const sent =
    what === 'order'
      ? tab.fetch(`${origin}/orders`, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: bodyOf('unnamed', 'tea', undefined),
        })
      : tab.fetch(`${origin}/sign-in`, { method: 'POST', body: 'secret-password' })
  sent.then(
    ({ status }) => world.told(`${tab.holder}: the unnamed ${what} got ${status}`),
    (error: unknown) => world.told(`${tab.holder}: the unnamed ${what} failed: ${String(error)}`),
  )
}

function targetOf(intent: IntentName): { path: string; method: string; operation: string; named: boolean } {
  if (intent.startsWith('doc-'))
    return { path: '/documents/7', method: 'PUT', operation: operations.documents, named: false }
  return { path: '/orders', method: 'POST', operation: operations.orders, named: intent.startsWith('till-') }
}

/** Somebody who can see the clock step back, and is there for long enough to look. */
function isSomebodyAwake({ seats, user }: World): boolean {
  return user() !== null && [...seats.values()].some(({ tab, closed }) => !tab.isDead && !tab.isFrozen && !closed)
}

async function spoil({ storage }: World, intent: IntentName, isDamage: boolean): Promise<void> {
  const [row] = storage()
    .rows()
    .filter(({ id, current }) => id === intent && current)
  if (row === undefined) return
  await storage().spoil(
    row.key,
    isDamage ? { data: row.data.slice(0, 40), format: row.format } : { data: row.data, format: row.format + 1 },
  )
}
