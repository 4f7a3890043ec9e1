/** One exchange with the server, from the record to a verdict: the attempt itself, its monitor, look-up and void by key. */
import type { Platform } from '../ports.ts'
import type { Dialect, HeardAnswer } from '../protocol/dialects/dialect.ts'
import type { EffectName } from '../protocol/effects.ts'
import type { Verdict } from '../protocol/events.ts'
import { type Finding, type InquiryKind, readInquiry } from '../protocol/inquiry.ts'
import type { Health } from '../protocol/pacing.ts'
import type { Policy } from '../protocol/policy.ts'
import type { IntentRecord } from '../protocol/record.ts'
import { type AnsweredExchange, classify, type Exchange, hasProof, hear, readAccepted } from '../protocol/verdict.ts'
import type { Times } from '../protocol/window.ts'
import { CORS_ALLOW_HEADERS, CORS_EXPOSE_HEADERS } from '../protocol/wire.ts'
import type { Announcer } from './announcer.ts'
import type { AskApp } from './app-code.ts'
import type { Leave } from './credentials.ts'
import { exchange, type HttpContext, type HttpRequest } from './http.ts'
import type { Resolved } from './options.ts'
import type { Pass } from './origins.ts'
import type { Policies } from './policies.ts'
import type { ServerTime } from './server-time.ts'
import { acceptOf, allowedMonitor, attemptRequest, inquiryRequest, keyUrl } from './wire.ts'

/** All that an exchange needs, fetched before the record is marked, so that nothing is awaited after. */
export interface Prepared {
  /** The exchange that it is prepared for, and no other. */
  readonly effect: EffectName
  readonly leave: Extract<Leave, { granted: true }>
  readonly pass: Pass
  readonly body: Uint8Array | null
  /** Monotonic ms: a holder that slept since then does not send (P47). */
  readonly preparedAt: number
}

export interface Attempts {
  /** Where an exchange of this kind goes. */
  urlOf(record: IntentRecord, kind: 'send' | InquiryKind): string
  /**
   * Calls fetch in the same tick. Never rejects.
   *
   * @param mayStill asked before a redirect is followed: false where nothing may be sent any more.
   */
  send(
    record: IntentRecord,
    prepared: Prepared,
    policy: Policy,
    times: Times,
    mayStill: () => boolean,
  ): Promise<{ verdict: Verdict; body: Uint8Array | null }>
  /** @param mayStill as for `send`. */
  inquire(
    record: IntentRecord,
    kind: InquiryKind,
    prepared: Prepared,
    times: Times,
    mayStill: () => boolean,
  ): Promise<Finding>
}

export interface AttemptParts {
  readonly options: Resolved
  readonly platform: Platform
  readonly policies: Policies
  readonly serverTime: ServerTime
  readonly announcer: Announcer
  readonly askApp: AskApp
  /** Ends exchanges when the client stops. */
  readonly stopSignal: AbortSignal
}

export function createAttempts({
  options,
  platform,
  policies,
  serverTime,
  announcer,
  askApp,
  stopSignal,
}: AttemptParts): Attempts {
  const { clock, transport, pageOrigin } = platform

  function http(record: IntentRecord): Omit<HttpContext, 'timeoutMs'> {
    const dialect = policies.dialectOf(record.operation)
    return {
      clock,
      transport,
      serverTime,
      maxBodyBytes: options.maxBodyBytes,
      pageOrigin,
      isProof: (header) => hasProof({ status: 303, header, text: '' }, dialect),
    }
  }

  function go(
    request: Pick<HttpRequest, 'url' | 'init'>,
    record: IntentRecord,
    mayFollow: () => boolean,
    timeoutMs = options.attemptTimeoutMs,
  ): Promise<Exchange> {
    return exchange({ ...request, signal: stopSignal, mayFollow }, { ...http(record), timeoutMs })
  }

  function urlOf(record: IntentRecord, kind: 'send' | InquiryKind): string {
    if (kind === 'send') return record.request.url
    if (kind === 'poll' && record.state.name === 'processing' && record.state.monitor.url !== '')
      return record.state.monitor.url
    return options.keysUrl === null ? record.request.url : keyUrl(options.keysUrl, record)
  }

  async function send(
    record: IntentRecord,
    prepared: Prepared,
    policy: Policy,
    times: Times,
    mayStill: () => boolean,
  ): ReturnType<Attempts['send']> {
    const dialect = guarded(policies.dialectOf(record.operation), record)
    const context = { dialect, times, leave: prepared.leave }
    const startedAt = clock.monotonic()
    let heard = await go(attemptRequest(record, prepared.body, context), record, mayStill)
    if (heard.kind === 'answered') heard = await followPointer(record, heard, context, startedAt, mayStill)
    const verdict = classify(heard, {
      dialect,
      accept: acceptOf(record),
      appAccepts: heard.kind === 'answered' ? await appWord(record, heard) : null,
      now: clock.now(),
      monitorUrl: heard.kind === 'answered' ? monitorOf(record, heard, policy) : null,
    })
    prepared.pass.end(
      healthOf(verdict),
      'retryAfterMs' in verdict && verdict.type === 'refusedWithoutEffect' ? verdict.retryAfterMs : null,
    )
    adviseOnCors(record, heard, verdict)
    const final = withBodyPace(verdict, heard)
    return { verdict: final, body: heard.kind === 'answered' && heard.bodyState === 'complete' ? heard.body : null }
  }

  /** "Already done", with a pointer: what it points to is the answer (section 6). It is asked for within the same attempt. */
  async function followPointer(
    record: IntentRecord,
    heard: AnsweredExchange,
    context: Parameters<typeof inquiryRequest>[4],
    startedAt: number,
    mayStill: () => boolean,
  ): Promise<AnsweredExchange> {
    const pointer = context.dialect.pointer?.(hear(heard)) ?? null
    const url = pointer === null ? null : URL.parse(pointer, heard.url)
    if (url === null || allowedMonitor(url, record, new Set()) !== 'own') return heard
    // Within the attempt's own time limit, or its lease would not outlast it (P47).
    const leftMs = Math.max(1, options.attemptTimeoutMs - (clock.monotonic() - startedAt))
    const found = await go(inquiryRequest(record, url.href, 'GET', false, context), record, mayStill, leftMs)
    const usable = found.kind === 'answered' && found.status >= 200 && found.status < 300
    // It was done, whether or not the pointer can be followed now: then only the body is missing.
    return { ...(usable ? found : { ...heard, status: 200, body: new Uint8Array() }), seeOtherProof: true }
  }

  /** A dialect's own functions may be the app's: one that throws has no word (P28). */
  function guarded(dialect: Dialect, record: IntentRecord): Dialect {
    function caught<T>(ask: ((answer: HeardAnswer) => T) | undefined): (answer: HeardAnswer) => T | null {
      return (answer) => {
        try {
          return ask?.(answer) ?? null
        } catch (error) {
          announcer.warn({
            code: 'app_code_failed',
            message: `A function of the dialect ${dialect.name} threw; the answer is judged without it.`,
            intentId: record.id,
            key: record.key,
            error,
          })
          return null
        }
      }
    }
    return { ...dialect, hint: caught(dialect.hint), pointer: caught(dialect.pointer) }
  }

  /** The operation's own word on a 2xx answer. An exception in the app's code counts as none (P28). */
  async function appWord(record: IntentRecord, heard: AnsweredExchange): Promise<boolean | null> {
    const accept = policies.operationOf(record.operation)?.accept
    if (accept === undefined || heard.opaque || heard.status < 200 || heard.status > 299) return null
    try {
      const word: unknown = await askApp(() => accept(responseOf(heard)), options.attemptTimeoutMs / 4)
      return typeof word === 'boolean' ? word : null
    } catch (error) {
      announcer.warn({
        code: 'app_code_failed',
        message: `accept() of ${record.operation} threw or did not answer; the answer is judged without it.`,
        intentId: record.id,
        key: record.key,
        error,
      })
      return null
    }
  }

  function monitorOf(record: IntentRecord, heard: AnsweredExchange, policy: Policy): string | null {
    if (heard.status !== 202) return null
    const dialect = policies.dialectOf(record.operation)
    const { header, text } = hear(heard)
    const named = dialect.monitorHeaders.map((name) => header(name)).find((value) => value !== null)
    const pointer = named ?? (dialect.monitorMember === null ? null : (readAccepted(text)?.monitor ?? null))
    const url = pointer === null ? null : URL.parse(pointer, heard.url)
    if (url !== null && allowedMonitor(url, record, options.monitorOrigins) !== null) return url.href
    if (url !== null) warnOfRefused(url, record)
    else {
      announcer.warnOnce(record.operation, {
        code: 'monitor_unreadable',
        message:
          'A 202 came without an address to ask. Across origins, the server must expose it: Access-Control-Expose-Headers: Location, Retry-After.',
        intentId: record.id,
        key: record.key,
      })
    }
    return policy.looksUp ? urlOf(record, 'lookup') : null
  }

  function warnOfRefused(url: URL, record: IntentRecord): void {
    const couldBeAllowed = allowedMonitor(url, record, new Set([url.origin])) !== null
    announcer.warnOnce(record.operation, {
      code: 'monitor_refused',
      message: couldBeAllowed
        ? `A 202 names a monitor on ${url.origin}, which is not the server's own origin; allow it in monitorOrigins, and it is asked without credentials.`
        : `A 202 names a monitor at ${url.protocol}//${url.host}, which is never asked: only https from https, http only from http, and no address with a user or password in it.`,
      intentId: record.id,
      key: record.key,
    })
  }

  /** Where the monitor lies, by today's options: what was allowed when it was stored may not be any more (P40). */
  function placeOf(record: IntentRecord, url: string): 'own' | 'foreign' | null {
    const isNamed = record.state.name === 'processing' && record.state.monitor.url !== ''
    if (!isNamed || url === urlOf(record, 'lookup')) return options.keysUrl === null ? null : 'own'
    const place = allowedMonitor(new URL(url), record, options.monitorOrigins)
    if (place === null) warnOfRefused(new URL(url), record)
    return place
  }

  function adviseOnCors(record: IntentRecord, heard: Exchange, verdict: Verdict): void {
    const { intentId, key } = { intentId: record.id, key: record.key }
    if (verdict.type === 'ambiguous' && verdict.unmarked) {
      announcer.warnOnce(record.operation, {
        code: 'markers_unreadable',
        message: `A 2xx answer shows no ${policies.dialectOf(record.operation).marker ?? 'marker'}. If the server sends it, expose it to this page: Access-Control-Expose-Headers: ${CORS_EXPOSE_HEADERS.join(', ')}.`,
        intentId,
        key,
      })
    }
    if (
      heard.kind === 'failed' &&
      pageOrigin !== null &&
      new URL(record.request.url).origin !== pageOrigin &&
      heard.detail === 'TypeError'
    ) {
      announcer.warnOnce(record.operation, {
        code: 'cors_suspected',
        message: `A request to another origin failed without a reason. If this happens always, the server may not allow the key: Access-Control-Allow-Headers: ${CORS_ALLOW_HEADERS.join(', ')}.`,
        intentId,
        key,
      })
    }
  }

  return {
    urlOf,
    send,
    async inquire(record, kind, prepared, times, mayStill) {
      const dialect = policies.dialectOf(record.operation)
      const url = urlOf(record, kind)
      const place = kind === 'poll' ? placeOf(record, url) : 'own'
      if (place === null) {
        prepared.pass.end()
        return { event: { type: 'monitorMissing', detail: 'monitor_refused' }, body: null }
      }
      const context = { dialect, times, leave: prepared.leave }
      const method = kind === 'void' ? 'DELETE' : 'GET'
      const heard = await go(inquiryRequest(record, url, method, place === 'foreign', context), record, mayStill)
      prepared.pass.end(heard.kind === 'answered' && heard.status < 500 ? 'well' : 'failed')
      const isPlainResult = kind === 'poll' && dialect.monitor === 'plain' && heard.kind === 'answered'
      return readInquiry(heard, {
        kind,
        dialect,
        bodyDigest: record.request.bodyDigest,
        now: clock.now(),
        accept: acceptOf(record),
        appAccepts: isPlainResult ? await appWord(record, heard) : null,
      })
    },
  }
}

/** A page on another origin may not read `Retry-After`: then the body's own member paces (P41, B91). */
function withBodyPace(verdict: Verdict, heard: Exchange): Verdict {
  if (verdict.type !== 'accepted' || verdict.retryAfterMs !== null || heard.kind !== 'answered') return verdict
  return { ...verdict, retryAfterMs: readAccepted(hear(heard).text)?.retryAfterMs ?? null }
}

function healthOf(verdict: Verdict): Health {
  if (verdict.type === 'neverDelivered' || verdict.type === 'ambiguous') return 'failed'
  return verdict.type === 'refusedWithoutEffect' ? 'throttled' : 'well'
}

/** An answer that was read, as a Response of its own. */
function responseOf(heard: AnsweredExchange): Response {
  const bodyless = heard.status === 204 || heard.status === 205 || heard.status === 304
  return new Response(bodyless ? null : (heard.body as Uint8Array<ArrayBuffer>), {
    status: heard.status,
    headers: heard.headers.map(([name, value]) => [name, value] as [string, string]),
  })
}
