/** What really happened on the server: the books against which everything else is judged. */

/** A business change that was committed. */
export interface Effect {
  /** The intent's key, as the simulation knows it even where it is not sent. */
  readonly key: string
  /** Who was authenticated. */
  readonly user: string
  /** What the body said. */
  readonly intent: string
  readonly content: string
  /** Position in the order of all effects. */
  readonly at: number
}

export interface Truth {
  readonly effects: readonly Effect[]
  record(effect: Omit<Effect, 'at'>): void
  /** How many effects a key had. */
  count(key: string): number
}

export function truth(): Truth {
  const effects: Effect[] = []
  const counts = new Map<string, number>()
  return {
    effects,
    record(effect) {
      effects.push({ ...effect, at: effects.length })
      counts.set(effect.key, (counts.get(effect.key) ?? 0) + 1)
    },
    count: (key) => counts.get(key) ?? 0,
  }
}
