/** What reaches the client of an answer. */
import { formatHttpDate } from '../protocol/http-date.ts'
import { DATE } from '../protocol/wire.ts'
import type { AnswerData } from '../server/answer-for.ts'
import { hasNoBody } from '../server/answer-for.ts'
import type { Connection } from './connections.ts'
import type { Stages } from './faults.ts'
import { bodyTerminated } from './network-error.ts'

/** A Response as data: read to its end, because what is lost must be known before it is lost. */
export async function readAnswer(response: Response): Promise<AnswerData> {
  const bytes = new Uint8Array(await response.arrayBuffer())
  return {
    status: response.status,
    headers: [...response.headers],
    body: hasNoBody(response.status) ? null : bytes,
  }
}

/**
 * What a server adds to every answer: the time, by the mock's clock, and the length of the body, without which nobody
 * could tell half of it from all of it.
 */
export function framed(answer: AnswerData, now: number): AnswerData {
  const names = new Set(answer.headers.map(([name]) => name.toLowerCase()))
  const headers = [...answer.headers]
  if (!names.has('date')) headers.push([DATE, formatHttpDate(now)])
  if (!names.has('content-length') && answer.body !== null) headers.push(['Content-Length', `${answer.body.length}`])
  return { ...answer, headers }
}

/** The answer on its way: without the headers that are hidden, and with as much of the body as arrives. */
export function delivered({ status, headers, body }: AnswerData, stages: Stages, connection: Connection): Response {
  const hidden = new Set(stages.hidden?.map((name) => name.toLowerCase()))
  const shown = headers.filter(([name]) => !hidden.has(name.toLowerCase()))
  const broken = stages.answer === 'cut' || stages.answer === 'stall'
  if (broken && body === null) {
    throw new Error(`${stages.answer === 'cut' ? 'cutBody()' : "hang('body')"}: status ${status} has no body to cut.`)
  }
  return new Response(broken ? half(body ?? new Uint8Array(), stages, connection) : body, {
    status,
    headers: shown.map(([name, value]): [string, string] => [name, value]),
  })
}

/**
 * The first half, rounded up, and then the break. In two steps and only when asked: a stream that errors throws away
 * what nobody has read yet.
 */
function half(body: Uint8Array, { answer }: Stages, connection: Connection): ReadableStream<Uint8Array<ArrayBuffer>> {
  let first = true
  return new ReadableStream(
    {
      async pull(controller) {
        if (first) {
          first = false
          controller.enqueue(new Uint8Array(body.subarray(0, Math.ceil(body.length / 2))))
        } else if (answer === 'cut') {
          controller.error(bodyTerminated())
        } else {
          // Rejects when the client gives up or the mock is closed; the stream then fails with the same error.
          await connection.lost
        }
      },
    },
    { highWaterMark: 0 },
  )
}
