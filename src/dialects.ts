/** How servers speak safe retries. Give one to a client; `none` says that the server does not de-duplicate. */
export type { Dialect, HeardAnswer, Meaning } from './protocol/dialects/dialect.ts'
export { type IetfOptions, ietf } from './protocol/dialects/ietf.ts'
export { none } from './protocol/dialects/none.ts'
export { samekey } from './protocol/dialects/samekey.ts'
export { stripe } from './protocol/dialects/stripe.ts'
