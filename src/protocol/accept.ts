/**
 * True when a media type is one that the request's `Accept` asks for. Only used to tell a foreign page from an answer
 * where a dialect has no marker (section 6), so quality values do not matter, except that `q=0` refuses.
 *
 * @param accept value of the request's `Accept`; null accepts anything (RFC 9110, 12.5.1).
 * @param contentType the answer's; null is accepted, for nothing speaks against it.
 */
export function accepts(accept: string | null, contentType: string | null): boolean {
  if (accept === null || contentType === null) return true
  const type = essence(contentType)
  return accept.split(',').some((range) => {
    const wanted = essence(range)
    if (/;\s*q=0(?:\.0*)?\s*(?:;|$)/i.test(range)) return false
    return wanted === '*/*' || wanted === type || (wanted.endsWith('/*') && type.startsWith(wanted.slice(0, -1)))
  })
}

function essence(value: string): string {
  return value.replace(/;.*$/s, '').trim().toLowerCase()
}
