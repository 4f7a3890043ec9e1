/** Messages as the app writes and gets them, and what they may look like. */
import { ConfigError } from '../../errors.ts'

/** What a relay delivers. The same on every delivery, byte for byte. */
export interface OutboxMessage {
  /** What the receiver de-duplicates by: a UUID in lower case. */
  readonly id: string
  /** What it is about: `orders.placed`. */
  readonly topic: string
  /** Whose messages keep their order; null where there is none. */
  readonly aggregate: string | null
  /** The very bytes; a text as UTF-8. */
  readonly payload: Uint8Array<ArrayBuffer>
  /** The same read as UTF-8: where a text was written, that text. */
  readonly text: string
  /** Epoch ms by the database's clock at which it was written. */
  readonly createdAt: number
}

/** What `writeOutbox` is told. */
export interface NewMessage {
  /** What it is about, 1 to 500 characters: `orders.placed`. Relays may be told which topics are theirs. */
  readonly topic: string
  /**
   * Whose messages are delivered in the order of their commits, whatever their topics, 1 to 500 characters: `order:7`.
   * Null: no order.
   */
  readonly aggregate: string | null
  /** What the receiver gets. Bytes, or a text, such as `JSON.stringify(...)` makes. */
  readonly payload: string | Uint8Array
  /** A UUID; the same one twice is an error of the database (P59). Default: a random one, version 7. */
  readonly messageId?: string
}

/** Longest name, in characters: an index entry of PostgreSQL holds no more than some 2700 bytes. */
const LONGEST_NAME = 500

/**
 * Checks before anything is sent: a statement that the database refuses would take the whole transaction with it.
 *
 * @throws ConfigError
 */
export function checkName(option: string, name: unknown): string {
  if (typeof name !== 'string' || name === '' || name.length > LONGEST_NAME) {
    throw new ConfigError(option, `must be a text of 1 to ${LONGEST_NAME} characters`)
  }
  // Neither can be stored as it is, and two names that differ must not become one.
  if (name.includes('\0') || hasLoneSurrogate(name)) {
    throw new ConfigError(option, 'must hold neither NUL nor half a surrogate pair')
  }
  return name
}

/** @throws ConfigError */
export function checkMessageId(id: unknown): string {
  if (typeof id !== 'string' || !/^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(id)) {
    throw new ConfigError('messageId', 'must be a UUID, such as 018f0f3e-7b1c-7cc2-9f5d-2d5a0c3b1e4f')
  }
  return id.toLowerCase()
}

/**
 * The bytes of a payload.
 *
 * @throws ConfigError for a text that has none: UTF-8 cannot say half a surrogate pair, and would replace it.
 */
export function payloadBytes(payload: unknown): Uint8Array {
  if (payload instanceof Uint8Array) return payload
  if (typeof payload !== 'string') throw new ConfigError('payload', 'must be bytes, or a text: JSON.stringify it')
  if (hasLoneSurrogate(payload)) throw new ConfigError('payload', 'holds half a surrogate pair: give bytes instead')
  return new TextEncoder().encode(payload)
}

/** Lenient: bytes that are no text are read as far as they are one. A byte order mark stays. */
export function payloadText(bytes: Uint8Array): string {
  return new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes)
}

function hasLoneSurrogate(text: string): boolean {
  return /\p{Surrogate}/u.test(text)
}
