/** What was thrown, in words that a row may keep: the message alone, of bearable length, and without NUL. */
export function errorText(error: unknown): string {
  if (error instanceof Error) return keepable(error.message)
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
