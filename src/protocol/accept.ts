/**
 * True when a media type is one that the request's `Accept` asks for. Only used to tell a foreign page from an answer
 * where a dialect has no marker (section 6), so quality values do not matter, except that `q=0` refuses. The most
 * specific range decides (RFC 9110, 12.5.1).
 *
 * @param accept value of the request's `Accept`; null accepts anything.
 * @param contentType the answer's; null is accepted, for nothing speaks against it.
 */
export function accepts(accept: string | null, contentType: string | null): boolean {
  if (accept === null || contentType === null) return true
  const type = essence(contentType)
  const ranges = accept.split(',')
  for (const wanted of [type, type.replace(/\/.*/s, '/*'), '*/*']) {
    const range = ranges.find((candidate) => essence(candidate) === wanted)
    if (range !== undefined) return !/;\s*q=0(?:\.0*)?\s*(?:;|$)/i.test(range)
  }
  return false
}

function essence(value: string): string {
  return value.replace(/;.*$/s, '').trim().toLowerCase()
}
