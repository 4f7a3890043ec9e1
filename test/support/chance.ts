/** Chance from a seed: the same seed gives the same numbers on every machine, in every run. */

export interface Chance {
  /** A number in [0, 1). */
  next(): number
  /** A whole number from 0 up to, and without, `below`. */
  below(below: number): number
  /** True in about `share` of all cases. */
  happens(share: number): boolean
  /** One of them. */
  pick<T>(from: readonly [T, ...T[]]): T
  /** One of them, each as often as its weight says. */
  weighted<T>(from: readonly (readonly [weight: number, value: T])[]): T
}

/** mulberry32. */
export function chance(seed: number): Chance {
  let state = seed | 0

  function next(): number {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296
  }

  const below = (limit: number): number => Math.floor(next() * limit)

  return {
    next,
    below,
    happens: (share) => next() < share,
    pick: (from) => from[below(from.length)] ?? from[0],
    weighted(from) {
      let left = next() * from.reduce((sum, [weight]) => sum + weight, 0)
      for (const [weight, value] of from) {
        left -= weight
        if (left < 0) return value
      }
      const last = from.at(-1)
      if (last === undefined) throw new RangeError('There is nothing to choose from.')
      return last[1]
    },
  }
}

/** The seed of schedule `index` of a run: neighbours have nothing in common. */
export function seedOf(run: number, index: number): number {
  let mixed = Math.imul(run ^ 0x9e3779b9, 0x85ebca6b) ^ Math.imul(index + 1, 0xc2b2ae35)
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x45d9f3b)
  return (mixed ^ (mixed >>> 15)) >>> 0
}
