/** What Express and Fastify know alike of how a request was addressed. Each obeys its own setting of trusted proxies. */
export interface Addressed {
  /** `http` or `https`. */
  readonly protocol: string
  /** Name and port. */
  readonly host: string
  /** Path and query as they came, also below a mounted router, which strips its own path from `url`. */
  readonly originalUrl: string
}

/**
 * The URL that the client used: the origin by the framework's trust, the path as it came.
 *
 * @param url what the connection alone tells, for a host that is none.
 * @throws TypeError for a target that is no URL.
 */
export function addressedUrl({ protocol, host, originalUrl }: Addressed, url: string): string {
  const origin = originOf(`${protocol}://${host}`) ?? new URL(url).origin
  // Not new URL(path, origin): that reads //elsewhere/orders as another host's.
  return originalUrl.startsWith('/') ? origin + originalUrl : new URL(originalUrl, origin).href
}

function originOf(text: string): string | null {
  if (!/^https?:/.test(text) || !URL.canParse(text)) return null
  return new URL(text).origin
}
