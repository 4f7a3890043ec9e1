/** The words that cases are written in: each makes a piece of data, and nothing else. */
import { PROBLEMS, type ProblemCode } from '../../protocol/problem.ts'
import type { MonitorStatus } from '../../protocol/wire.ts'
import type { ShopOrder } from './shop.ts'
import type { Expected, Question, Submission } from './steps.ts'

/** Sends an order, or a text as it is. */
export function submit(order: Submission['order'] = tea, more: Partial<Submission> = {}): Submission {
  return { kind: 'submit', order, ...more }
}

export function lookup(more: Partial<Question> = {}): Question {
  return { ...more, kind: 'lookup' }
}

export function voids(more: Partial<Question> = {}): Question {
  return { ...more, kind: 'void' }
}

export const tea: ShopOrder = { item: 'tea' }
export const coffee: ShopOrder = { item: 'coffee' }

/** A first answer. */
export function first(status: number, more: Partial<Expected> = {}): Expected {
  return { status, from: 'key', ...more }
}

/** The tea was placed just now. */
export const placed: Expected = first(201, { json: tea })

/** The stored answer again: that of the step with this name, byte for byte. */
export function replayOf(name: string, more: Partial<Expected> = {}): Expected {
  return { status: 0, from: 'replay', sameAs: name, ...more }
}

/** A refusal of section 16. */
export function refused(code: ProblemCode, more: Partial<Expected> = {}): Expected {
  return { status: PROBLEMS[code].status, from: 'elsewhere', code, ...more }
}

/** Any other problem: nothing is proven about the key. */
export function problem(status: number, code: string, more: Partial<Expected> = {}): Expected {
  return { status, from: 'elsewhere', code, ...more }
}

/** A document: what a monitor, a look-up and a void tell. */
export function told(status: MonitorStatus, more: Partial<Expected> = {}): Expected {
  const { json, headers, ...rest } = more
  return {
    status: 200,
    from: 'key',
    json: { status, ...(json as object | undefined) },
    headers: { 'content-type': 'application/json', 'cache-control': 'no-store', ...headers },
    ...rest,
  }
}

export const absent: Expected = problem(404, 'absent')
export const forbidden: Expected = problem(403, 'forbidden')
export const expired: Expected = refused('idempotency_expired')
export const voided: Expected = refused('idempotency_voided')
export const conflict: Expected = refused('idempotency_conflict')
export const inProgress: Expected = refused('idempotency_in_progress', { headers: { 'retry-after': '1' } })
export const keyInvalid: Expected = refused('idempotency_key_invalid')
export const bodyRefused: Expected = problem(400, 'body_refused')
