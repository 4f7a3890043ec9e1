/** What the demo knows of one fault of PROTOCOL.md, section 17. */
import type { Pool } from 'pg'
import type { Order } from '../orders/order.ts'
import type { Stage } from './stage.ts'

export interface Fault {
  /** As in PROTOCOL.md: F5, or the rule that it is about. */
  readonly id: string
  /** What goes wrong, for the table. */
  readonly story: string
  /** What a person can do about an intent that stands there, for the table. */
  readonly person: string
  /** What is counted and shown besides orders. */
  readonly counts?: Effect
  /** The plain client has nothing that this could happen to. */
  readonly plainHasNone?: true
  /** Some of these can end unknown: the protocol says so, and no client could know better. */
  readonly mayStayUnknown?: true
  /** Customers order something else than the file says. */
  readonly edit?: (order: Order, place: number) => Order
  /** It takes long, so it begins early. */
  readonly isSlow?: true
  /** Lets it happen to both clients, and returns when both are through. */
  readonly play: (stage: Stage) => Promise<Played>
}

/** What orders lead to, elsewhere: charges at the payment provider, e-mails at the mailer. */
export type Effect = 'charges' | 'e-mails'

export interface Played {
  /** How often it really went wrong for samekey. A fault that did not happen proves nothing. */
  readonly happened: number
  /** Promises that only this fault can see broken, in words. */
  readonly broken?: readonly string[]
  /** How many intents have to end in a state other than succeeded. Default: none, and unknown as they come where they may. */
  readonly besides?: Readonly<Record<string, number>>
  /** Where it was played. Default: in the house. */
  readonly database?: Pool
}
