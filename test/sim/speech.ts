/** How servers of other dialects say what the kit says: an answer of the kit in their words. */
import type { Setting } from './schedule.ts'

/** The kit's answer as a server of this dialect would give it. */
export async function spoken(dialect: Setting['dialect'], answer: Response): Promise<Response> {
  if (dialect === 'samekey') return answer
  const text = await answer.text()
  const headers = new Headers(answer.headers)
  // Marker, key routes and ages are this profile's own.
  for (const name of ['idempotency-expires', 'idempotency-body']) headers.delete(name)
  if (dialect === 'none') headers.delete('idempotent-replayed')
  const code = codeOf(text)
  if (!code.startsWith('idempotency_')) return new Response(text, { status: answer.status, headers })
  headers.set('content-type', 'application/json')
  if (dialect === 'stripe') return new Response(...stripeProblem(code, answer.status, headers))
  headers.set('content-type', 'application/problem+json')
  return new Response(...ietfProblem(code, answer.status, headers))
}

type Parts = [body: string, init: { status: number; headers: Headers }]

function stripeProblem(code: string, status: number, headers: Headers): Parts {
  if (code === 'idempotency_conflict')
    return [JSON.stringify({ error: { type: 'idempotency_error' } }), { status: 400, headers }]
  if (code === 'idempotency_in_progress') {
    const error = { type: 'invalid_request_error', code: 'idempotency_key_in_use' }
    return [JSON.stringify({ error }), { status: 409, headers }]
  }
  return [JSON.stringify({ error: { type: 'api_error' } }), { status, headers }]
}

function ietfProblem(code: string, status: number, headers: Headers): Parts {
  const problem = { type: `https://server.example/idempotency/${code}`, title: 'Idempotency' }
  return [JSON.stringify(problem), { status: code === 'idempotency_conflict' ? 422 : status, headers }]
}

function codeOf(text: string): string {
  try {
    const { code } = JSON.parse(text) as { code?: unknown }
    return typeof code === 'string' ? code : ''
  } catch {
    return ''
  }
}
