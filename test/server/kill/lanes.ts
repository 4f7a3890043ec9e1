/** Points at a time: as many as the smallest machine has cores. */
export const LANES = 2

/** Does something for each of them, in lanes. */
export async function inLanes<Item>(
  items: readonly Item[],
  walk: (next: () => Item | undefined, lane: number) => Promise<void>,
): Promise<void> {
  const left = [...items]
  await Promise.all(Array.from({ length: LANES }, (_, lane) => walk(() => left.shift(), lane)))
}

/**
 * Goes through all points in lanes. In a lane, whoever takes over at one point is the one that dies at the next: a fresh
 * process each time, and only one for each point.
 *
 * @returns what was found wrong, with its point.
 */
export async function throughAll<Member extends { kill(): Promise<unknown> }>(
  points: readonly string[],
  indices: readonly number[],
  take: () => Promise<Member>,
  visit: (victim: Member, heir: Member, index: number, lane: number) => Promise<readonly string[]>,
): Promise<string[]> {
  const wrong: string[] = []
  await inLanes(indices, async (next, lane) => {
    let victim = await take()
    for (let index = next(); index !== undefined; index = next()) {
      const heir = await take()
      const found = await visit(victim, heir, index, lane)
      wrong.push(...found.map((complaint) => `${index} (${points[index]}): ${complaint}`))
      victim = heir
    }
    await victim.kill()
  })
  return wrong
}

/**
 * What of a path is missing on its list, or null: an empty list would prove nothing.
 *
 * @param shows beginnings of labels, in their order.
 */
export function missingOf(labels: readonly string[], shows: readonly string[]): string | null {
  let at = -1
  for (const label of shows) {
    at = labels.findIndex((each, index) => index > at && each.startsWith(label))
    if (at < 0) return `${label} is not on the list:\n${labels.join('\n')}`
  }
  return null
}

/** The statements of a list of points, each of which must be there with both of its moments. */
export function statementsOf(points: readonly string[]): string[] {
  const sent = points.filter((point) => point.startsWith('sent: '))
  const ended = points.filter((point) => /^(?:answered|failed): /.test(point))
  if (sent.length !== ended.length) throw new Error(`moments are missing:\n${points.join('\n')}`)
  return points.filter((point) => !ended.includes(point)).map((point) => point.replace(/^sent: /, ''))
}
