/** What was thrown, in words that a row may keep: its message and its cause's, of bearable length, and without NUL. */
export function errorText(error: unknown): string {
  if (error instanceof Error) {
    // "fetch failed" alone helps nobody.
    const { message, cause } = error
    return keepable(cause instanceof Error ? `${message}: ${cause.message}` : message)
  }
  return keepable(typeof error === 'string' ? error : 'Something was thrown that is no Error.')
}

/** A text that every database keeps. */
export function keepable(text: string): string {
  // Halves of surrogate pairs last: the cut may have made one.
  return text
    .replaceAll('\0', '')
    .slice(0, LONGEST)
    .replaceAll(/\p{Surrogate}/gu, '\uFFFD')
}

const LONGEST = 1000
