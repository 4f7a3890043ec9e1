/** What shop and client have agreed on. Everything is short here, so that the demo is: real ones take minutes and days. */

/** Where keys are looked up and voided. */
export const KEYS_PATH = '/idempotency-keys'

/** How long the forgetful operation remembers a key. */
export const SHORT_RETENTION_MS = 4000

/** The longest time between telling an age and the server's look at the key. */
export const TRANSIT_MS = 500

/** Time limit of one attempt, for both clients. */
export const ATTEMPT_TIMEOUT_MS = 1000

/** Orders that one client process sends at the same time. */
export const CONCURRENCY = 8
