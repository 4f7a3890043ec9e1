/**
 * What a schedule is: a setting, and steps in order. Both are plain data, so that a schedule can be made from a seed,
 * printed, cut shorter, stored in a test, and run again.
 */

/** What holds for the whole schedule. */
export interface Setting {
  /** How the server speaks. */
  readonly dialect: 'samekey' | 'ietf' | 'stripe' | 'none'
  /** How credentials travel: asked for at each attempt, or in a cookie that all tabs share. */
  readonly identity: 'token' | 'cookie'
  /** Where keys come from. */
  readonly keys: 'minted' | 'derived' | 'given'
  /** True where a tab sees that another one died (Web Locks). */
  readonly locks: boolean
  /** True where tabs hear of each other's changes at once. */
  readonly channel: boolean
  /** True where a refused connection proves that nothing was delivered (Node). */
  readonly provesNonDelivery: boolean
  /** True where the transport may deliver a request twice by itself. */
  readonly repeats: boolean
  /** True where answers carry the server's `Date`. */
  readonly dated: boolean
  /** By how much the device's clock is ahead of the server's, ms. */
  readonly skewMs: number
  /** Attempts that an intent may spend. */
  readonly attempts: number
  /** True where the app can ask by business identity. */
  readonly reconcile: boolean
  /** True where the page is on another origin, and the server lets it read no header of its own (P41). */
  readonly hidesHeaders?: boolean
}

/** A tab or process, by number. */
export type TabNumber = number

/** Users of the device. */
export type User = 'alice' | 'bob'

/**
 * The name of an intent. `order-…` are independent POSTs, `doc-…` PUTs to one document, `till-…` POSTs in one named lane.
 * `pay-…` are POSTs too; where they are accepted, the worker calls another service, which remembers no payment of the
 * name `pay-blind-…`.
 */
export type IntentName = string

/**
 * What an order says. `sold-out` is refused for good, `nonsense` is refused without being remembered, `broken` makes the
 * server store a 500; the others are taken.
 */
export type Content = 'tea' | 'coffee' | 'sold-out' | 'nonsense' | 'broken'

/** What becomes of one request. Where an answer is lost, the server has done its part all the same. */
export type Fate =
  /** The connection is not made. */
  | 'refused'
  /** Nothing arrives. */
  | 'request-lost'
  /** It arrives, up to the transit late, when the sender has long given up. */
  | 'request-late'
  | 'answer-lost'
  /** The answer's body breaks off. */
  | 'answer-cut'
  /** The answer comes after the time limit of an attempt, or shortly before. */
  | 'answer-late'
  /** Nothing ever comes back, and the sender's abort is not heard. */
  | 'black-hole'
  | 'black-hole-after'
  /** Delivered twice; only where the transport may. */
  | 'twice'
  /** A page of somebody else with status 200. */
  | 'portal'
  /** JSON of somebody else with status 200. */
  | 'foreign-json'
  /** A proxy gives up while the server goes on. */
  | 'proxy-502'
  | 'proxy-504'
  /** A gateway answers, and the server never sees it. */
  | 'gateway-401'
  | 'gateway-403'
  | 'gateway-404'
  | 'gateway-413'
  | 'gateway-429'
  | 'gateway-500'
  | 'gateway-503'
  /** Done, and the answer is a redirect to a host that is dead. */
  | 'redirect-away'
  /** A redirect to the same place: it is followed. */
  | 'redirect-here'
  /** Done, and answered by a redirect to the same place. */
  | 'redirect-after'
  /** Done, and reported as a connection that was never made: by a transport that repeats by itself, and cannot be believed. */
  | 'refused-after'
  /** The session is over: 303 to a sign-in page with status 200. */
  | 'login-page'

/** What becomes of one operation of a tab's store. */
export type StoreFault =
  | 'fails'
  | 'full'
  /** It is said to have failed perhaps, and has not. */
  | 'unsure-written'
  | 'unsure-lost'
  /** It is said to have failed perhaps, and lands 5 s later. */
  | 'unsure-late'
  | 'slow'
  /** The connection to the store is lost for the next operations. */
  | 'gone'

/** What the server does with the next execution. */
export type ServerFault =
  | 'crash-before-commit'
  | 'crash-after-commit'
  /** It takes some seconds. */
  | 'slow'
  | 'throws'
  /** The database is not there: nothing is executed. */
  | 'unavailable'
  /** It is accepted with 202, and done later. */
  | 'accepts'

/** What the worker does with the next piece of accepted work. */
export type WorkerFault =
  /** It dies before it has written anything. */
  | 'dies'
  /** It dies when its step is committed. */
  | 'dies-after-step'
  /** It stands still for longer than its lease, then goes on. */
  | 'sleeps'
  | 'fails'
  | 'refuses'
  | 'leaves-unknown'
  /** A payment was taken by the service behind the shop, and its answer is lost. */
  | 'loses-call'
  /** The same, and the worker dies. */
  | 'dies-after-call'

export type Step =
  /** Time passes. */
  | { readonly do: 'pass'; readonly ms: number }
  /** The device's wall clock is set. */
  | { readonly do: 'jump'; readonly ms: number }
  | { readonly do: 'sleep'; readonly ms: number }
  /** Opens a tab; one that is open is killed before. It may be the page of another client on the same storage (P4). */
  | { readonly do: 'open'; readonly tab: TabNumber; readonly client?: 'bank' }
  | { readonly do: 'kill'; readonly tab: TabNumber }
  /** Dies at one of its next port operations, before or after it took effect. */
  | { readonly do: 'kill-at'; readonly tab: TabNumber; readonly operation: number; readonly when: 'before' | 'after' }
  /** Stops cleanly. */
  | { readonly do: 'close'; readonly tab: TabNumber }
  | { readonly do: 'freeze'; readonly tab: TabNumber }
  /** Stands still before one of its next port operations, or when it has taken effect. */
  | { readonly do: 'freeze-at'; readonly tab: TabNumber; readonly operation: number; readonly when?: 'after' }
  | { readonly do: 'thaw'; readonly tab: TabNumber }
  /** Its timers are rounded up to a minute from now on. */
  | { readonly do: 'throttle'; readonly tab: TabNumber }
  /** The page is shown. */
  | { readonly do: 'show'; readonly tab: TabNumber }
  | {
      readonly do: 'submit'
      readonly tab: TabNumber
      readonly intent: IntentName
      readonly content: Content
      /** A double click. */
      readonly twice?: boolean
      /** Once more, after a refusal (P7). */
      readonly again?: boolean
      /** No send after so many ms from now. */
      readonly sendBeforeMs?: number
      /** A number in the body, digit by digit as it is written there. */
      readonly amount?: string
    }
  /** A write that nobody named goes through the same fetch: an order, or a password to sign in with (P2). */
  | { readonly do: 'send-unnamed'; readonly tab: TabNumber; readonly what: 'order' | 'password' }
  /** Whoever waits in this tab stops waiting. */
  | { readonly do: 'abort'; readonly tab: TabNumber }
  | {
      readonly do: 'cancel' | 'retry' | 'check' | 'acknowledge' | 'forget' | 'skip' | 'abandon' | 'abandon-by-force'
      readonly tab: TabNumber
      readonly intent: IntentName
    }
  /** A person looks at the shop's books and says what is true. */
  | { readonly do: 'resolve'; readonly tab: TabNumber; readonly intent: IntentName }
  | { readonly do: 'resume' | 'list'; readonly tab: TabNumber }
  /** Somebody signs in on the device; the tabs are told. */
  | { readonly do: 'sign-in'; readonly user: User }
  /** The same, and only one tab knows. */
  | { readonly do: 'sign-in-unseen'; readonly user: User; readonly tab: TabNumber }
  | { readonly do: 'sign-out' }
  /** The user's tokens are not taken any more, until renewed. */
  | { readonly do: 'expire-token'; readonly user: User }
  | { readonly do: 'renew-token'; readonly user: User }
  /** From now on auth() gives a header besides, which chooses one of the user's accounts; null takes it back (P9). */
  | { readonly do: 'choose-account'; readonly account: string | null }
  /** The user may not order any more, until allowed again. */
  | { readonly do: 'revoke'; readonly user: User }
  | { readonly do: 'allow'; readonly user: User }
  /** What becomes of the next requests, in order. */
  | { readonly do: 'network'; readonly fates: readonly Fate[] }
  | { readonly do: 'partition' }
  | { readonly do: 'heal' }
  /** The platform's hint, true or not. */
  | { readonly do: 'hint'; readonly online: boolean }
  | { readonly do: 'store'; readonly tab: TabNumber; readonly fault: StoreFault; readonly operation: number }
  /** All that the device has stored is gone, and its tabs with it. */
  | { readonly do: 'lose-storage' }
  /** A record on disk: damaged, or rewritten by a newer version. */
  | { readonly do: 'damage' | 'renew-format'; readonly intent: IntentName }
  | { readonly do: 'server'; readonly fault: ServerFault }
  | { readonly do: 'worker'; readonly fault: WorkerFault }
  /** A release of the server that fingerprints by other rules (P16). */
  | { readonly do: 'deploy' }

export interface Schedule {
  readonly setting: Setting
  readonly steps: readonly Step[]
}

/** What most schedules are about. */
export const plainSetting: Setting = {
  dialect: 'samekey',
  identity: 'token',
  keys: 'minted',
  locks: true,
  channel: true,
  provesNonDelivery: false,
  repeats: false,
  dated: true,
  skewMs: 0,
  attempts: 30,
  reconcile: false,
}

/** Times of the simulated house, ms: short enough that a schedule sees every end. */
export const times = {
  retention: 30 * 60_000,
  transit: 60_000,
  grace: 120_000,
  attemptTimeout: 10_000,
  workerLease: 10_000,
} as const
