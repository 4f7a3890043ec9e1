/** What shop and clients have agreed on. Everything is short here, so that the demo is: real ones take minutes and days. */

/** Where keys are looked up and voided. */
export const KEYS_PATH = '/idempotency-keys'

/** How long the forgetful shop remembers a key, and how much longer its row lives. */
export const SHORT_RETENTION_MS = 6000
export const SHORT_GRACE_MS = 1000

/** The longest time between telling an age and the server's look at the key. */
export const TRANSIT_MS = 500

/** Time limit of one attempt, for both clients: in a network that loses things, and in one that does not. */
export const ATTEMPT_TIMEOUT_MS = 1000
export const CALM_TIMEOUT_MS = 4000

/** Orders that one client process sends at the same time. */
export const CONCURRENCY = 8

/** How long a worker, or a relay, takes work for. */
export const LEASE_MS = 3000

/** How often they look for work that no hint told them of. */
export const POLL_MS = 500

/** The longest time from writing a call to the payment provider down to its arrival there. */
export const CALL_TRANSIT_MS = 2000
