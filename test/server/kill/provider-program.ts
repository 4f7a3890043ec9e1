/** A service behind the shop, as a process: it charges, and has a database of its own, by a connection of its own. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import pg from 'pg'
import { serveQuestions } from '../../support/questions.ts'
import type { ChargeOrder } from './provider.ts'

export interface ProviderJob {
  readonly databaseUrl: string
}

export interface ProviderReady {
  readonly url: string
}

/** Answers for this account wait until they are released. */
export type ProviderQuestion = { readonly hold: string } | { readonly release: string }

serveQuestions<ProviderJob, ProviderReady, ProviderQuestion>(async ({ databaseUrl }) => {
  const database = new pg.Pool({ connectionString: databaseUrl, max: 1 })
  const held = new Map<string, { readonly over: Promise<void>; readonly end: () => void }>()

  async function found(operationId: string): Promise<number | null> {
    const { rows } = await database.query<{ id: number }>('select id from charges where operation_id = $1', [
      operationId,
    ])
    return rows[0]?.id ?? null
  }

  /** One connection, and so one after the other. */
  let last: Promise<unknown> = Promise.resolve()
  function charge(operationId: string, { account, takesKeys }: ChargeOrder): Promise<number> {
    const charged = last.then(async () => {
      await database.query('insert into charge_requests values ($1, $2)', [operationId, account])
      const earlier = takesKeys ? await found(operationId) : null
      if (earlier !== null) return earlier
      const { rows } = await database.query<{ id: number }>(
        'insert into charges (operation_id, account) values ($1, $2) returning id',
        [operationId, account],
      )
      return rows[0]?.id ?? 0
    })
    last = charged.catch(() => {})
    return charged
  }

  async function answer(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const operationId = (incoming.url ?? '').split('/').at(-1) ?? ''
    if (incoming.method === 'GET') return void response.end(JSON.stringify({ id: await found(operationId) }))
    const chunks: Buffer[] = []
    for await (const chunk of incoming) chunks.push(chunk as Buffer)
    const order = JSON.parse(Buffer.concat(chunks).toString()) as ChargeOrder
    if (order.isRefused) return void response.writeHead(402).end('{}')
    const id = await charge(operationId, order)
    await held.get(order.account)?.over
    // It was done all the same: that is what a 500 may mean.
    response.writeHead(order.fails ? 500 : 201).end(JSON.stringify({ id }))
  }

  const server = createServer((incoming, response) => {
    answer(incoming, response).catch(() => response.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    ready: { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` },
    answer(question) {
      if ('release' in question) {
        held.get(question.release)?.end()
        held.delete(question.release)
        return null
      }
      let end = (): void => {}
      const over = new Promise<void>((resolve) => {
        end = resolve
      })
      held.set(question.hold, { over, end })
      return null
    },
  }
})
