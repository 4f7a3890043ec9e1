/** A web-standard answer through Node's response. */
import { STATUS_CODES } from 'node:http'
import { sendNodeResponse } from 'srvx/node'
import type { Outgoing } from './exchange.ts'

/** Those of which an answer may have several; others replace what was set before. */
const severalOf = new Set(['set-cookie', 'vary'])

/**
 * Sends the answer. Of a client that is gone nothing is said: the key keeps the answer for it.
 *
 * @throws what the body's own stream failed with; the connection is cut then, so that half an answer is not taken for one.
 */
export async function send(response: Response, outgoing: Outgoing): Promise<void> {
  // Somebody else answered, such as a time limit in front; or nobody listens.
  if (outgoing.headersSent || outgoing.destroyed) return response.body?.cancel()
  // One by one, and not through writeHead: cookies of a session stay, and middleware sees what it expects.
  for (const [name, value] of response.headers) {
    if (severalOf.has(name)) outgoing.appendHeader(name, value)
    else outgoing.setHeader(name, value)
  }
  const { status, statusText, body } = response
  await sendNodeResponse(
    outgoing,
    new Response(body, { status, statusText: statusText || (STATUS_CODES[status] ?? '') }),
  )
  if (outgoing.errored) throw outgoing.errored
}
