/** What users do: they order, order the same once more, order twice in one tick, and change their minds. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Chance } from '../support/chance.ts'
import type { Book, Wanted } from './book.ts'
import type { Account } from './house.ts'
import type { Member } from './member.ts'
import type { ClientWord, OrderKind } from './words.ts'

/** Kinds of orders, and how often out of a hundred. */
const kinds: readonly (readonly [number, OrderKind])[] = [
  [48, 'order'],
  [14, 'refused'],
  [28, 'later'],
  [10, 'later refused'],
]
/** Between two orders, ms: so that two cores have time for all the kills. */
const pauseMs = [60, 240] as const
/** Most orders of an account whose end nobody was told yet. */
const mostOpen = 14
/** Longest time in an order's transaction, or at a worker. */
const mostDwellMs = 250
const mindChangesWithinMs = 1500

export interface Traffic {
  /** One more order by this client, if its account may have one. */
  order(account: Account, client: Member): void
  /** Users look after what they were told nothing of: they order it again, from whichever process is there. */
  askAgain(account: Account, client: Member): void
  /** Goes on until it is over. */
  flow(isOver: () => boolean): Promise<void>
}

export function trafficOf(book: Book, accounts: readonly Account[], chance: Chance): Traffic {
  let count = 0

  function submit(client: Member | undefined, { order }: Wanted, times = 1): void {
    client?.say({ submit: order, times } satisfies ClientWord)
  }

  function order(account: Account, client: Member | undefined): void {
    if (book.notEnded(account.name).length >= mostOpen) return
    count += 1
    const wanted: Wanted = {
      account: account.name,
      order: {
        intent: `${account.name}-${String(count).padStart(5, '0')}`,
        kind: chance.weighted(kinds),
        dwellMs: chance.happens(0.4) ? chance.below(mostDwellMs) : 0,
      },
      isCancelled: false,
    }
    book.want(wanted)
    // A double click, or two processes at once.
    const way = chance.next()
    submit(client, wanted, way < 0.15 ? 2 : 1)
    if (way > 0.8) for (const other of account.clients) if (other !== client) submit(other, wanted)
    if (chance.happens(0.15)) changeMind(account, wanted, chance.below(mindChangesWithinMs))
  }

  function changeMind(account: Account, wanted: Wanted, afterMs: number): void {
    const cancel = (): void => {
      const client = ready(account)
      if (client === undefined) return
      wanted.isCancelled = true
      client.say({ cancel: wanted.order.intent } satisfies ClientWord)
    }
    setTimeout(cancel, afterMs)
  }

  function ready({ clients }: Account): Member | undefined {
    const there = clients.filter(({ isReady }) => isReady)
    return there[chance.below(there.length)]
  }

  return {
    order,

    askAgain(account, client) {
      for (const wanted of book.notEnded(account.name)) submit(client, wanted)
    },

    async flow(isOver) {
      while (!isOver()) {
        await sleep(pauseMs[0] + chance.below(pauseMs[1] - pauseMs[0]))
        const account = accounts[chance.below(accounts.length)]
        if (account === undefined) continue
        order(account, ready(account))
        // Somebody asks once more about something, however old.
        const old = [...book.wanted.values()].at(chance.below(book.wanted.size))
        const elsewhere = accounts.find(({ name }) => name === old?.account)
        if (old !== undefined && elsewhere !== undefined && chance.happens(0.1)) submit(ready(elsewhere), old)
      }
    },
  }
}
