/**
 * Which request headers decide the business result (P15). Every header does, an API version or `If-Match` for
 * instance, except those listed here: they may differ between two sends of one intent. A header that is missing here
 * makes a false conflict; one that is here wrongly makes two different requests look the same. So the list is closed,
 * and an operation adds to it with `omit: ['header:x-name']`.
 */

/** What says who asks: never part of a fingerprint, and never stored (P15, P51). Lower case. */
export const CREDENTIAL_HEADERS = [
  'authorization',
  'cookie',
  'cookie2',
  'dpop',
  'api-key',
  'apikey',
  'x-api-key',
  'x-auth-token',
  'x-access-token',
  'token',
  'access-token',
  'private-token',
  'id-token',
  'refresh-token',
  'auth-token',
  'api-token',
  'x-api-token',
  'x-id-token',
  'x-refresh-token',
  'x-session-token',
  'x-vault-token',
  'x-gitlab-token',
  'x-github-token',
  'x-shopify-access-token',
  'x-jwt',
  'x-authorization',
  'x-auth',
  'authentication',
  'x-apikey',
  'x-goog-api-key',
  'x-functions-key',
  'ocp-apim-subscription-key',
  'x-csrf-token',
  'x-xsrf-token',
  'x-amz-security-token',
  'signature',
  'signature-input',
  'signature-agent',
  'x-signature',
  'proxy-authorization',
] as const

const credentials: ReadonlySet<string> = new Set(CREDENTIAL_HEADERS)

/** True for a header that says who asks. Lower case. */
export function isCredential(name: string): boolean {
  return credentials.has(name)
}

const TRACES = [
  'traceparent',
  'tracestate',
  'baggage',
  'b3',
  'uber-trace-id',
  'sentry-trace',
  'newrelic',
  'elastic-apm-traceparent',
  'request-id',
  'x-request-id',
  'correlation-id',
  'x-correlation-id',
  'x-trace-id',
  'x-span-id',
  'x-cloud-trace-context',
  'x-amzn-trace-id',
  'x-ms-client-request-id',
  'x-client-trace-id',
  'trace-id',
  'amz-sdk-invocation-id',
  'x-goog-request-id',
] as const

const TRANSPORT = [
  'accept',
  'accept-charset',
  'accept-encoding',
  'accept-language',
  'alt-used',
  'cache-control',
  'connection',
  'date',
  'dnt',
  'early-data',
  'expect',
  'forwarded',
  'from',
  'host',
  'http2-settings',
  'keep-alive',
  'max-forwards',
  'origin',
  'pragma',
  'priority',
  'purpose',
  'referer',
  'save-data',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'upgrade-insecure-requests',
  'user-agent',
  'via',
  'x-amz-date',
  'x-client-ip',
  'x-real-ip',
  'x-request-start',
  'x-requested-with',
  'true-client-ip',
  'cdn-loop',
  'x-stainless-retry-count',
  'x-retry-count',
  'retry-attempt',
  'amz-sdk-request',
  'x-queue-start',
  'x-scheme',
  'x-varnish',
  'x-timestamp',
  'client-ip',
  'rtt',
  'downlink',
  'ect',
  'device-memory',
  'viewport-width',
] as const

/** The body has its own place in the fingerprint, media type included; these only repeat it. */
const BODY = [
  'content-type',
  'content-length',
  'content-encoding',
  'content-md5',
  'content-digest',
  'repr-digest',
  'digest',
  'want-content-digest',
  'want-repr-digest',
] as const

/**
 * Header names, in lower case, that stay out of the fingerprint: credentials, trace ids, what transports and proxies
 * add, and what follows from the body.
 */
export const IGNORED_HEADERS: ReadonlySet<string> = new Set([...CREDENTIAL_HEADERS, ...TRACES, ...TRANSPORT, ...BODY])

/** The same for families of headers, by the start of their names: our own and the key's, and what proxies add. */
export const IGNORED_HEADER_PREFIXES: readonly string[] = [
  'idempotency-',
  'samekey-',
  'proxy-',
  'sec-',
  'x-forwarded-',
  'x-b3-',
  'x-datadog-',
  'cf-',
  'fly-',
  'x-vercel-',
  'x-amz-cf-',
  'x-azure-',
  'x-arr-',
  'x-nf-',
  'x-envoy-',
  'access-control-',
]

/**
 * The headers that decide the business result: names in lower case and sorted, values without white space around them,
 * several values of one name joined by a comma in their order, as HTTP allows any hop to do (RFC 9110, 5.3).
 *
 * @param omit further names to leave out, in lower case.
 */
export function businessHeaders(
  headers: readonly (readonly [string, string])[],
  omit: ReadonlySet<string>,
): (readonly [string, string])[] {
  const found = new Map<string, string>()
  for (const [rawName, rawValue] of headers) {
    const name = rawName.toLowerCase()
    if (omit.has(name) || isIgnored(name)) continue
    const before = found.get(name)
    found.set(name, before === undefined ? rawValue.trim() : `${before}, ${rawValue.trim()}`)
  }
  return [...found].sort(([a], [b]) => (a < b ? -1 : 1))
}

function isIgnored(name: string): boolean {
  return IGNORED_HEADERS.has(name) || IGNORED_HEADER_PREFIXES.some((prefix) => name.startsWith(prefix))
}
