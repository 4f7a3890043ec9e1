/** Answers as four columns: status, headers, body, reference. */
import type { StoredAnswer, StoredBody } from '../decide.ts'

/** The columns under one prefix, as `pg` hands them over. */
export interface AnswerColumns {
  readonly status: number | null
  /** JSON text, an array of [name, value]. */
  readonly headers: string | null
  readonly body: Uint8Array | null
  readonly reference: string | null
}

/** @returns null where there is no answer. */
export function answerOf({ status, headers, body, reference }: AnswerColumns): StoredAnswer | null {
  if (status === null || headers === null) return null
  return { status, headers: JSON.parse(headers) as [string, string][], body: bodyOf(body, reference) }
}

function bodyOf(body: Uint8Array | null, reference: string | null): StoredBody {
  if (reference !== null) return { kind: 'reference', reference }
  // A copy: `pg` cuts its values out of a buffer that it shares.
  return body === null ? { kind: 'omitted' } : { kind: 'bytes', bytes: new Uint8Array(body) }
}

/** The four values, in the order of the columns. */
export function answerValues(
  answer: StoredAnswer | null,
): [status: number | null, headers: string | null, body: Uint8Array | null, reference: string | null] {
  if (answer === null) return [null, null, null, null]
  const { status, headers, body } = answer
  return [
    status,
    JSON.stringify(headers),
    body.kind === 'bytes' ? body.bytes : null,
    body.kind === 'reference' ? body.reference : null,
  ]
}
