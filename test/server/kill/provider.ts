/** How the shop talks to the provider. */
import { request } from 'node:http'

/** Tables of the provider, which nothing of the shop touches. Nothing in them is unique: a second charge would be seen. */
export const PROVIDER_TABLES = `
create table charges (id serial primary key, operation_id text not null, account text not null);
create table charge_requests (operation_id text not null, account text not null)`

export interface ChargeOrder {
  readonly account: string
  /** It does one operation id once. */
  readonly takesKeys: boolean
  /** It charges, and answers 500. */
  readonly fails: boolean
  readonly isRefused: boolean
}

/** @param reach told about the moments of the call at which a process can die. */
export function postCharge(
  base: string,
  operationId: string,
  order: ChargeOrder,
  { signal, reach }: { readonly signal: AbortSignal; readonly reach: (label: string) => void },
): Promise<{ readonly status: number; readonly id: number }> {
  reach('the call is made')
  return new Promise((resolve, reject) => {
    const sent = request(`${base}/charges/${operationId}`, { method: 'POST', signal, agent: false }, (incoming) => {
      let text = ''
      incoming.setEncoding('utf8')
      incoming.on('error', reject)
      incoming.on('data', (chunk: string) => {
        text += chunk
      })
      incoming.on('end', () => {
        reach('the call is answered')
        resolve({ status: incoming.statusCode ?? 0, ...(JSON.parse(text) as { readonly id: number }) })
      })
    })
    sent.on('error', reject)
    // Handed to the operating system, which delivers it whatever becomes of the process.
    sent.on('finish', () => reach('the call is on the wire'))
    sent.end(JSON.stringify(order))
  })
}

/** @returns null where there is no such charge. */
export async function askForCharge(base: string, operationId: string): Promise<number | null> {
  const response = await fetch(`${base}/charges/${operationId}`)
  return ((await response.json()) as { readonly id: number | null }).id
}
