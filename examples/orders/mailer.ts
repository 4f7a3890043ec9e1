/**
 * Sends e-mails: the receiver of the shop's messages. "Sent" is a row here. A message that comes twice is one e-mail,
 * because the note that it came and the row commit together.
 *
 *     PUT /messages/{id}    an e-mail to send
 */
import { createServer } from 'node:http'
import { nodeHandler } from 'samekey/server/node'
import { migrate, reapInbox, receiveInTransaction } from 'samekey/server/postgres'
import type { EMail } from './e-mails.ts'
import { atTheEnd, closed, listen, openPool, setting } from './program.ts'
import { createMissing } from './tables.ts'

const program = setting('PROGRAM_NAME', 'mailer')
// A database of its own would do as well: receiver and sender share nothing but the message.
const pool = openPool(program)
await migrate(pool)
await createMissing(
  pool,
  `create table if not exists sent_e_mails (
    id bigint generated always as identity primary key,
    recipient text not null,
    subject text not null,
    order_id text not null,
    sent_at timestamptz not null default now()
  );
  create index if not exists sent_e_mails_by_order on sent_e_mails (order_id)`,
)

async function receive(request: Request): Promise<Response> {
  const messageId = /^\/messages\/([\w-]+)$/.exec(new URL(request.url).pathname)?.[1]
  if (request.method !== 'PUT' || messageId === undefined) return new Response(null, { status: 404 })
  const { to, subject, orderId } = (await request.json()) as EMail
  await receiveInTransaction(pool, { consumer: 'mailer', messageId }, async (transaction) => {
    await transaction.query('insert into sent_e_mails (recipient, subject, order_id) values ($1, $2, $3)', [
      to,
      subject,
      orderId,
    ])
  })
  // The same word the second time: the sender only has to know that it need not come again.
  return new Response(null, { status: 204 })
}

// For longer than a message can be under way: one that comes after that is sent once more.
const monthMs = 30 * 86_400_000
const reaper = setInterval(() => void reapInbox(pool, { keepMs: monthMs }).catch(() => {}), 60_000)

const server = createServer(nodeHandler(receive))
await listen(program, server, 3002)
atTheEnd(
  () => closed(server),
  () => clearInterval(reaper),
  () => pool.end(),
)
