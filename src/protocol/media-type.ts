/**
 * True for `application/json` and every `+json` type (RFC 6839), whatever its parameters and letter case.
 *
 * @param contentType value of a `Content-Type` header; null where there is none.
 */
export function isJsonMediaType(contentType: string | null): boolean {
  return contentType !== null && /^\s*(?:application\/json|[^\s;,/]+\/[^\s;,/]+\+json)\s*(?:;|$)/i.test(contentType)
}

/**
 * One spelling for a media type: type and parameter names in lower case, no white space around `;`, empty parameters
 * gone. Parameter values stay as they are, for some of them distinguish letter case.
 *
 * @param without parameter names to leave out, in lower case.
 */
export function canonicalMediaType(contentType: string, without: readonly string[] = []): string {
  return contentType
    .split(';')
    .map((piece) => piece.trim().replace(/^[^=]*/, (name) => name.trim().toLowerCase()))
    .filter((piece) => piece !== '' && !without.some((name) => piece.startsWith(`${name}=`)))
    .join(';')
}
