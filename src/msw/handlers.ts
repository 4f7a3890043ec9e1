/** The mock as Mock Service Worker handlers. */
import { HttpResponse, http, type RequestHandler } from 'msw'
import type { MockServer } from './mock-server.ts'
import { NetworkError } from './network-error.ts'

/** What was answered lately, by mock and request: an installation that asks again is told the same. */
const answers = new WeakMap<MockServer, Map<string, Promise<Response>>>()
const answersKept = 1000

/**
 * Handlers for `setupServer` of `msw/node` and `setupWorker` of `msw/browser`. What the mock does not serve is left to
 * other handlers.
 *
 * Installing a mock more than once is harmless: a request that several installations see is executed once (B127). When
 * MSW is closed, requests that hang are ended, so that nothing is left open (B129).
 *
 * @example
 * ```ts
 * import { setupServer } from 'msw/node'
 * import { createMockServer, handlers } from 'samekey/msw'
 *
 * const mock = createMockServer({ baseUrl: 'https://api.example.com' })
 * const server = setupServer(...handlers(mock))
 * server.listen()
 * ```
 */
export function handlers(server: MockServer): RequestHandler[] {
  const handler = http.all(
    ({ request }) => server.serves(request),
    async ({ request, requestId }) => {
      try {
        const response = await answerOnce(server, requestId, request)
        return unhurried(response.clone())
      } catch (error) {
        // As fetch shows it: no status, no reason.
        if (error instanceof NetworkError || request.signal.aborted) return HttpResponse.error()
        throw error
      }
    },
  )
  return [Object.assign(handler, { dispose: () => server.disconnect() })]
}

function answerOnce(server: MockServer, requestId: string, request: Request): Promise<Response> {
  const known = answers.get(server) ?? new Map<string, Promise<Response>>()
  answers.set(server, known)
  const earlier = known.get(requestId)
  if (earlier !== undefined) return earlier
  const answer = server.fetch(request)
  known.set(requestId, answer)
  for (const oldest of known.keys()) {
    if (known.size <= answersKept) break
    known.delete(oldest)
  }
  return answer
}

/**
 * The same answer, whose body breaks off one turn of the event loop later, if it does. MSW closes the connection with
 * the break, and the client would lose what it has not read yet, the headers included; on a real one it had the time.
 */
function unhurried(response: Response): Response {
  if (response.body === null) return response
  const reader = response.body.getReader()
  const body = new ReadableStream<Uint8Array<ArrayBuffer>>(
    {
      async pull(controller) {
        try {
          const { done, value } = await reader.read()
          if (done) controller.close()
          else controller.enqueue(value)
        } catch (error) {
          await turn()
          controller.error(error)
        }
      },
      cancel: (reason) => reader.cancel(reason),
    },
    { highWaterMark: 0 },
  )
  const { status, headers } = response
  return new Response(body, { status, headers })
}

/** One turn of the event loop. No timer: it takes no time, and tests may own those. */
function turn(): Promise<void> {
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel()
    port1.onmessage = () => {
      port1.close()
      resolve()
    }
    port2.postMessage(null)
  })
}
