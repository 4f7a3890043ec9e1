/**
 * What the engine may be told to do, one at a time and in order. A rule names its effects; the engine knows how.
 * In every rule `persist` comes first: nothing is sent, asked or told before it is written down (P17, P22).
 */

/** Name of an effect. */
export type EffectName =
  /** Write the record durably, if it still stands as it was read. */
  | 'persist'
  /** Tell the callers, the listeners and the other contexts. */
  | 'announce'
  /** Hand the request over to the network, and feed back what that proved. */
  | 'send'
  /** Ask the stored monitor. */
  | 'poll'
  /** Ask the server by key. */
  | 'lookup'
  /** Ask the server to void the key. */
  | 'void'
  /** Remove the record: it is settled, acknowledged and no longer remembered. */
  | 'remove'

/** Every effect name. */
export const effectNames: readonly EffectName[] = ['persist', 'announce', 'send', 'poll', 'lookup', 'void', 'remove']

/** Effects that talk to the server: the record is held under a lease while one of them runs (P47). */
export const exchanges: ReadonlySet<EffectName> = new Set<EffectName>(['send', 'poll', 'lookup', 'void'])
