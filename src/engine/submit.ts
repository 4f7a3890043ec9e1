/**
 * From a call to a stored intent (P5-P12, P17, P18): the name is claimed in the tick of the call, key and bytes are fixed
 * once, and the record is durable before anything is sent.
 */
import {
  ConfigError,
  IntentMismatchError,
  PossibleDuplicateError,
  RecordSetAsideError,
  SamekeyError,
  StoreFailure,
  StoreWriteError,
  SubmitTooLateError,
  UnsupportedBodyError,
} from '../errors.ts'
import type { IntentStore, Platform, StoredRow } from '../ports.ts'
import { type Fingerprint, type FingerprintInput, fingerprint } from '../protocol/fingerprint.ts'
import { JsonRefusedError } from '../protocol/json.ts'
import { checkKey, derivedKey } from '../protocol/key.ts'
import type { IntentRecord, KeyOrigin } from '../protocol/record.ts'
import { decideSubmit } from '../protocol/submission.ts'
import { IDEMPOTENCY_AGE, IDEMPOTENCY_SCOPE, IDEMPOTENCY_SINCE } from '../protocol/wire.ts'
import type { Announcer } from './announcer.ts'
import { type BodySource, fingerprintBody, readBody } from './body.ts'
import { fixedCall, givenKeyOf, type IntentCall, type KeyChoice } from './call.ts'
import type { Stored } from './handle.ts'
import { isSetAside, keyOf, type Ledger, type Loaded } from './ledger.ts'
import { newRecord } from './new-record.ts'
import type { Resolved } from './options.ts'
import { matchingOperation, type Policies } from './policies.ts'
import type { Ticket } from './tickets.ts'
import { abortError } from './waiting.ts'

/** What is to be sent. */
export interface Given {
  readonly request: Request
  /** Where its body's bytes are read from. */
  readonly source: BodySource
  /** Key from the request's own key header, adopted (P5). */
  readonly headerKey: string | null
}

/** What is submitted. */
interface Submission extends Given {
  readonly call: IntentCall
  readonly scope: string
  readonly ticket: Ticket
}

/** A stored intent, new or joined. */
export interface Submitted {
  readonly loaded: Loaded
  readonly stored: Stored
}

export interface Submitter {
  /** Submits in the ticket's turn: one at a time per name, so that the second click of a tick finds the first one's record (P6, B02). */
  submit(call: IntentCall, given: Given, ticket: Ticket): Promise<Submitted>
}

export interface SubmitParts {
  readonly options: Resolved
  readonly store: IntentStore
  readonly platform: Platform
  readonly ledger: Ledger
  readonly announcer: Announcer
  readonly policies: Policies
  readonly started: () => Promise<void>
  readonly work: (row: StoredRow) => void
  /** The client stops. */
  readonly stopSignal: AbortSignal
}

export function createSubmitter(parts: SubmitParts): Submitter {
  const { options, store, platform, ledger, announcer, policies } = parts
  const { clock, ids } = platform

  async function submit(given: IntentCall, { request, source, headerKey }: Given, ticket: Ticket): Promise<Submitted> {
    const call = fixedCall(given)
    const { scope } = ticket
    if (scope === null) {
      throw new ConfigError(
        'scope',
        'nobody is signed in (scope() gave no text), so it is not known whose intent this is; sign in first, or say anonymous: true',
        { intentId: call.intent },
      )
    }
    if (!/^https?:/.test(request.url)) {
      throw new ConfigError('input', 'only http: and https: addresses can be sent to', { intentId: call.intent })
    }
    if (request.mode === 'no-cors') {
      throw new ConfigError('mode', '"no-cors" hides every answer, so no outcome could ever be known; use "cors"', {
        intentId: call.intent,
      })
    }
    if (headerKey !== null && call.key !== undefined && givenKeyOf(call) !== headerKey) {
      throw new ConfigError(
        'key',
        'differs from the key in the request header, and a key is never replaced (P5); give one',
        {
          intentId: call.intent,
        },
      )
    }
    await ticket.turn
    return settle({ call, request, source, headerKey, scope, ticket })
  }

  async function settle(submission: Submission): Promise<Submitted> {
    const { call, request, source, scope } = submission
    const intentId = call.intent
    const bytes = await readBody(source, options.maxBodyBytes, intentId, bodySignal(call)).catch((error: unknown) => {
      throw call.signal?.aborted === true ? abortError({ id: intentId, key: undefined }, call.signal.reason) : error
    })
    const operation = operationOf(call, request)
    const input: FingerprintInput = {
      method: request.method,
      url: request.url,
      operation: operation.name,
      headers: businessHeaders(request, operation.name, intentId),
      body: await fingerprintBody(request.headers.get('content-type'), bytes, intentId),
    }
    const print = fingerprintOf(input, operation.name, intentId)
    const givenKey = givenKeyOf(call) ?? submission.headerKey
    await stored('no', intentId, parts.started)
    for (;;) {
      const row = await stored('no', intentId, () => store.current(options.name, scope, intentId))
      const found = row === undefined ? undefined : readable(row)
      const wish = { again: call.again ?? false, key: givenKey }
      const decision = decideSubmit(found?.record, input, wish)
      if (decision === 'join' && found !== undefined) return joined(found)
      if (decision === 'mismatch' && found !== undefined) throw mismatch(found.record)
      if (decision === 'other_key' && found !== undefined) {
        throw new IntentMismatchError(
          found.record.state.name,
          `"${intentId}" has another key already; a key is never replaced (P5). Leave the key out, or use a new intent id.`,
          { intentId, key: found.record.key },
        )
      }
      const { key, keyOrigin, since } = chooseKey(submission, operation.name)
      const duplicates = await possibleDuplicates(scope, print, intentId, key, operation.name)
      const making = {
        client: options.name,
        scope,
        call,
        request,
        key,
        keyOrigin,
        since,
        operation,
        input,
        print,
        bytes,
      }
      const record = newRecord(making, clock.now())
      refuseIfTooLate(submission, key)
      if (call.signal?.aborted === true) throw abortError({ id: intentId, key }, call.signal.reason)
      const supersedes = found === undefined ? undefined : { key: found.record.key, revision: found.row.revision }
      const blobs = bytes === null ? {} : { request: bytes }
      const result = await stored('maybe', intentId, () => store.insert(ledger.newRow(record), blobs, supersedes), key)
      if (!result.inserted) {
        if (result.taken === 'key') throw keyTaken(result.row, intentId, key)
        // Another context was quicker, or the record moved on: look again.
        continue
      }
      const loaded = { row: result.row, record }
      await refuseIfHeldUp(submission, loaded)
      announcer.announce(null, loaded, 'submitted', null)
      parts.work(result.row)
      return { loaded, stored: { id: intentId, key, possibleDuplicates: duplicates } }
    }
  }

  /** Ends the reading of a body: nothing of it is stored yet, so an abort ends the submit. */
  function bodySignal({ signal }: IntentCall): AbortSignal {
    return signal === undefined ? parts.stopSignal : AbortSignal.any([signal, parts.stopSignal])
  }

  function readable(row: StoredRow): Loaded {
    const found = ledger.read(row)
    if (!isSetAside(found)) return found
    throw new RecordSetAsideError(
      found.reason,
      `The record of "${row.id}" is ${found.reason === 'newer' ? 'from a newer version of samekey' : 'damaged'}, so it is not known whether it was sent. Resolve or abandon it before the id is used again.`,
      { intentId: row.id, key: row.key },
    )
  }

  function joined(found: Loaded): Submitted {
    // A new submit wakes what is blocked (P33).
    if (found.record.state.name === 'blocked') parts.work(found.row)
    return { loaded: found, stored: { id: found.record.id, key: found.record.key, possibleDuplicates: [] } }
  }

  function mismatch(record: IntentRecord): IntentMismatchError {
    const derived =
      record.keyOrigin === 'derived' ? ' Its key is derived from the name, so a new try takes a new name.' : ''
    return new IntentMismatchError(
      record.state.name,
      `"${record.id}" is ${record.state.name} with another content, and one name means one thing. Use a new intent id for what is meant now.${derived}`,
      { intentId: record.id, key: record.key },
    )
  }

  function keyTaken(row: StoredRow, intentId: string, key: string): ConfigError {
    return new ConfigError(
      'key',
      `this key belongs to the intent "${row.id}"; one key means one intent (P5). Nothing was stored or sent.`,
      { intentId, key },
    )
  }

  /** A submit that was frozen for longer than intents are remembered could mint a second key for one (P8, H21). */
  function refuseIfTooLate({ call, ticket }: Submission, key: string): void {
    const waited = Math.max(clock.now() - ticket.calledAt, clock.monotonic() - ticket.calledAtMonotonic)
    if (waited <= options.rememberMs) return
    throw new SubmitTooLateError(
      `The submit of "${call.intent}" was held up for longer than intents are remembered, so an earlier one may be forgotten. Nothing was stored or sent; look whether it happened, then submit again.`,
      { intentId: call.intent, key },
    )
  }

  /** The same, where the claim itself was held up: it is taken back, unless another context has begun to work on it. */
  async function refuseIfHeldUp(submission: Submission, { row }: Loaded): Promise<void> {
    try {
      refuseIfTooLate(submission, row.key)
    } catch (error) {
      const remove = (): Promise<boolean> => store.remove(keyOf(row), { revision: row.revision })
      if (await stored('maybe', row.id, remove, row.key)) throw error
    }
  }

  function chooseKey(
    { call, headerKey, request, scope }: Submission,
    operation: string,
  ): { key: string; keyOrigin: KeyOrigin; since: number | null } {
    const { keyRules } = policies.dialectOf(operation)
    const choice: KeyChoice | null = call.key ?? (headerKey === null ? null : { value: headerKey, since: 'new' })
    const facts = { intentId: call.intent }
    if (choice === null) {
      const key = minted(keyRules.uuidVersion ?? 7, call.intent)
      const wrong = typeof key === 'string' ? checkKey(key, keyRules) : 'The key is no text.'
      if (wrong !== null)
        throw new ConfigError('mintKey', `${wrong} Give a mintKey that makes keys this server takes.`, facts)
      return { key, keyOrigin: 'minted', since: null }
    }
    const since = choice.since === 'new' ? null : Number(choice.since)
    if ('value' in choice) {
      const wrong = checkKey(choice.value, keyRules)
      if (wrong !== null) throw new ConfigError('key', `${wrong} Nothing was stored or sent.`, facts)
      return { key: choice.value, keyOrigin: 'given', since }
    }
    const key = derivedKey({ origin: new URL(request.url).origin, scope, operation, intentId: call.intent })
    const wrong = checkKey(key, keyRules)
    if (wrong !== null) throw new ConfigError('key.derived', `a derived key is a UUID of version 5. ${wrong}`, facts)
    return { key, keyOrigin: 'derived', since }
  }

  function minted(uuidVersion: 4 | 7, intentId: string): string {
    try {
      return ids.key(uuidVersion)
    } catch (cause) {
      const why = cause instanceof ConfigError ? cause.message.replace(/^mintKey: /, '') : 'threw, so there is no key'
      throw new ConfigError('mintKey', `${why} Nothing was stored or sent.`, { intentId, cause })
    }
  }

  async function possibleDuplicates(
    scope: string,
    print: Fingerprint,
    intentId: string,
    key: string,
    operation: string,
  ): Promise<Stored['possibleDuplicates']> {
    const rows = await stored('no', intentId, () => store.twins(options.name, scope, print.digest))
    const duplicates = rows.filter((row) => row.id !== intentId).map((row) => ({ intentId: row.id, key: row.key }))
    if (duplicates.length === 0) return duplicates
    const names = duplicates.map((duplicate) => `"${duplicate.intentId}"`).join(', ')
    const message = `"${intentId}" has the same content as ${names}, whose outcome is not known: it may be the same thing a second time.`
    if (policies.operationOf(operation)?.duplicate === 'refuse') {
      throw new PossibleDuplicateError(duplicates, `${message} Settle that first. Nothing was stored or sent.`, {
        intentId,
      })
    }
    announcer.warn({ code: 'possible_duplicate', message, intentId, key })
    return duplicates
  }

  function operationOf(
    call: IntentCall,
    request: Request,
  ): { name: string; registered: boolean; lane: string | undefined } {
    const name = call.operation ?? matchingOperation(options, request)
    if (name === null)
      return { name: `${request.method} ${new URL(request.url).pathname}`, registered: false, lane: call.lane }
    const operation = policies.operationOf(name)
    if (operation === undefined) {
      throw new ConfigError(
        'operation',
        `"${name}" is not registered; add it to operations, so that it is known after a reload too (P24)`,
        { intentId: call.intent },
      )
    }
    return { name, registered: true, lane: call.lane ?? operation.lane }
  }

  /** What is stored of the caller's headers: never the key or what is told afresh at each send, and never credentials (P51). */
  function businessHeaders(request: Request, operation: string, intentId: string): [string, string][] {
    const { keyHeader, tellsAge } = policies.dialectOf(operation)
    const told = tellsAge ? [IDEMPOTENCY_AGE, IDEMPOTENCY_SINCE, IDEMPOTENCY_SCOPE] : []
    const own = new Set([keyHeader, ...told].map((name) => name?.toLowerCase()))
    const { origin } = new URL(request.url)
    const kept: [string, string][] = []
    for (const [rawName, value] of request.headers) {
      const name = rawName.toLowerCase()
      if (own.has(name)) continue
      if (!options.credentialHeaders.has(name)) kept.push([name, value])
      else if (options.auth === null || !options.credentialOrigins.has(origin)) {
        throw new ConfigError(
          `headers.${name}`,
          options.auth === null
            ? 'is a credential, and credentials are not stored; give it through auth(), which is asked at every attempt'
            : `is a credential, and ${origin} gets none; name that origin in credentialOrigins, and give it through auth()`,
          { intentId },
        )
      }
    }
    return kept
  }

  function fingerprintOf(input: FingerprintInput, operation: string, intentId: string): Fingerprint {
    try {
      return fingerprint(input, policies.operationOf(operation)?.fingerprint)
    } catch (cause) {
      if (!(cause instanceof JsonRefusedError)) throw cause
      const place = cause.path === null || cause.path === '' ? '' : ` at ${cause.path}`
      throw new UnsupportedBodyError(
        `The JSON body cannot be compared safely${place}: ${cause.message} Nothing was stored or sent.`,
        { intentId, cause },
      )
    }
  }

  /** A store failure as what it means to the caller (F1, P18). */
  async function stored<T>(worst: 'no' | 'maybe', intentId: string, call: () => Promise<T>, key?: string): Promise<T> {
    try {
      return await call()
    } catch (cause) {
      if (cause instanceof SamekeyError && !(cause instanceof StoreFailure)) throw cause
      const state = worst === 'no' || (cause instanceof StoreFailure && cause.written === 'no') ? 'no' : 'maybe'
      const message =
        state === 'no'
          ? `"${intentId}" could not be stored, so nothing was sent and nothing will be.`
          : `It is not known whether "${intentId}" is stored: it may be, and may then be sent. Submit the same id again to join it.`
      const why = cause instanceof StoreFailure ? ` The store says: ${cause.message}` : ''
      throw new StoreWriteError(state, message + why, { intentId, key, cause })
    }
  }

  return { submit }
}
