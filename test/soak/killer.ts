/** Kills whoever it is the turn of, and lets it come back a little later. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Chance } from '../support/chance.ts'
import type { House } from './house.ts'
import type { Member, MemberKind } from './member.ts'
import type { Traffic } from './traffic.ts'

/** A round of kills; each round in an order of its own, so that none is forgotten in a short run. */
const round: readonly MemberKind[] = [
  'client',
  'client',
  'client',
  'client',
  'server',
  'server',
  'server',
  'worker',
  'worker',
]
/** Between two kills, and from a kill to the next start, ms. */
const betweenMs = [350, 850] as const
const downMs = [50, 900] as const
/** A client that was just told to order dies within this time: in its store's write, or with a request on its way. */
const inTheActMs = 25

export type Kills = Record<MemberKind, number>

/** Goes on until it is over; resolves when everything that was killed is there again. */
export async function killOff(
  house: House,
  traffic: Traffic,
  { chance, kills, isOver }: { readonly chance: Chance; readonly kills: Kills; readonly isOver: () => boolean },
): Promise<void> {
  const comingBack = new Set<Promise<void>>()
  const between = ([least, most]: readonly [number, number]): number => least + chance.below(most - least)
  let turns: MemberKind[] = []

  function victim(kind: MemberKind): Member | undefined {
    const alive = house.members.filter((member) => member.kind === kind && member.isAlive)
    return alive[chance.below(alive.length)]
  }

  async function catchInTheAct(member: Member): Promise<void> {
    const account = house.accounts.find(({ clients }) => clients.includes(member))
    if (account === undefined) return
    for (let orders = chance.below(3); orders >= 0; orders -= 1) traffic.order(account, member)
    await sleep(chance.below(inTheActMs))
  }

  async function comeBack(member: Member): Promise<void> {
    await sleep(between(downMs))
    await member.start()
    const account = house.accounts.find(({ clients }) => clients.includes(member))
    if (account !== undefined) traffic.askAgain(account, member)
  }

  while (!isOver()) {
    await sleep(between(betweenMs))
    if (turns.length === 0) turns = shuffled(round, chance)
    const member = victim(turns.pop() ?? 'client')
    if (member === undefined) continue
    if (member.isReady && chance.happens(0.5)) await catchInTheAct(member)
    if (!member.isAlive) continue
    await member.kill()
    kills[member.kind] += 1
    const back = comeBack(member)
    comingBack.add(back)
    void back.then(() => comingBack.delete(back))
  }
  await Promise.all(comingBack)
}

function shuffled<T>(items: readonly T[], { below }: Chance): T[] {
  const left = [...items]
  return items.flatMap(() => left.splice(below(left.length), 1))
}
