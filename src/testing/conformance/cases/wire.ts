/** The rest of the wire profile (section 16, P41): problems, methods, paths, CORS. */
import { CORS_ALLOW_HEADERS, CORS_EXPOSE_HEADERS } from '../../../protocol/wire.ts'
import { conformanceShop } from '../shop.ts'
import type { Ask, ConformanceCase, Step } from '../steps.ts'
import {
  absent,
  bodyRefused,
  coffee,
  conflict,
  expired,
  keyInvalid,
  lookup,
  placed,
  problem,
  refused,
  submit,
  tea,
  told,
  voided,
  voids,
} from '../words.ts'

const { origin } = conformanceShop
const page = { headers: { origin } }
const stranger = { headers: { origin: 'https://elsewhere.example' } }
const key = '/keys/orders.create/k-1'

function preflight(path: string, method: string, from: string): Ask {
  const headers = {
    origin: from,
    'access-control-request-method': method,
    'access-control-request-headers': 'authorization,content-type,idempotency-key,idempotency-age',
  }
  return { kind: 'other', method: 'OPTIONS', path, by: null, headers }
}

/** What a page must be told before it may send a request with this method. */
function allowed(path: string, method: string): Step {
  return {
    send: preflight(path, method, origin),
    gets: {
      status: 204,
      from: 'elsewhere',
      headers: {
        'access-control-allow-origin': origin,
        'access-control-allow-methods': [method],
        'access-control-allow-headers': [...CORS_ALLOW_HEADERS, 'Authorization', 'Content-Type'],
      },
    },
  }
}

const shown = { 'access-control-allow-origin': origin, 'access-control-expose-headers': CORS_EXPOSE_HEADERS }
const hidden = { 'access-control-allow-origin': null }

export const wire: readonly ConformanceCase[] = [
  {
    title: 'section 16: every problem is application/problem+json with a code and a type of its own',
    steps: [
      { send: submit(tea), gets: placed },
      { send: submit(tea, { key: null }), gets: refused('idempotency_key_missing') },
      { send: submit(tea, { key: 'a, b' }), gets: keyInvalid },
      { send: submit(tea, { tag: 'acme.bob' }), gets: refused('idempotency_scope_mismatch') },
      { send: submit(coffee), gets: conflict },
      { send: submit(tea, { key: 'k-2', age: '9'.repeat(30) }), gets: expired },
      { send: voids({ key: 'k-3' }), gets: told('voided') },
      { send: submit(tea, { key: 'k-3' }), gets: voided },
      { send: lookup({ key: 'k-4' }), gets: absent },
      { send: submit('{', { key: 'k-4' }), gets: bodyRefused },
      { send: submit({ outcome: 'throw-once' }, { key: 'k-5' }), gets: problem(500, 'execution_failed') },
      { send: { kind: 'other', method: 'PATCH', path: key }, gets: problem(405, 'method_not_allowed') },
      { send: { kind: 'other', method: 'GET', path: '/keys/orders.unknown/k-1' }, gets: problem(404, 'not_found') },
    ],
    effects: 1,
  },
  {
    title: 'problems and documents are never kept by a cache: the same URL answers differently a moment later',
    steps: [
      { send: lookup(), gets: { ...absent, headers: { 'cache-control': 'no-store' } } },
      { send: submit(tea), gets: placed },
      { send: lookup(), gets: told('succeeded') },
      { send: submit(coffee), gets: { ...conflict, headers: { 'cache-control': 'no-store' } } },
    ],
    effects: 1,
  },
  {
    title: 'section 16: a key takes GET and DELETE; anything else is 405 and says so',
    steps: ['POST', 'PUT', 'PATCH'].map((method) => ({
      send: { kind: 'other', method, path: key },
      gets: problem(405, 'method_not_allowed', { headers: { allow: ['GET', 'DELETE'] } }),
    })),
    effects: 0,
  },
  {
    title: 'section 16: an unknown operation is 404, and so is what is no key at all',
    steps: ['/keys/orders.unknown/k-1', '/keys/orders.create', '/keys/orders.create/k-1/more'].map((path) => ({
      send: { kind: 'other', method: 'GET', path },
      gets: { status: 404, from: 'elsewhere' },
    })),
    effects: 0,
  },
  {
    title: 'P41, B132: a page of the shop’s origin may send all of the profile’s headers, to operations and to keys',
    steps: [allowed('/orders', 'POST'), allowed('/shipments', 'POST'), allowed(key, 'GET'), allowed(key, 'DELETE')],
    effects: 0,
  },
  {
    title: 'P41: a page of another origin is allowed nothing',
    steps: [
      {
        send: preflight('/orders', 'POST', 'https://elsewhere.example'),
        gets: { status: 204, from: 'elsewhere', headers: hidden },
      },
      { send: lookup(stranger), gets: { ...absent, headers: hidden } },
    ],
    effects: 0,
  },
  {
    title: 'P41: the page can read proof, marker and pace of every answer, refusals included',
    steps: [
      { send: submit(tea, page), gets: { ...placed, headers: shown } },
      { send: submit(tea, page), gets: { status: 201, from: 'replay', headers: shown } },
      { send: submit(coffee, page), gets: { ...conflict, headers: shown } },
      { send: submit(tea, { ...page, key: null }), gets: { ...refused('idempotency_key_missing'), headers: shown } },
      { send: submit(tea, { ...page, by: null }), gets: { status: 401, from: 'elsewhere', headers: shown } },
      { send: lookup(page), gets: { status: 200, from: 'key', headers: shown } },
      { send: voids({ ...page, key: 'k-2' }), gets: { status: 200, from: 'key', headers: shown } },
      {
        send: submit({ item: 'tea', outcome: 'accept' }, { ...page, key: 'k-3' }),
        gets: { status: 202, from: 'key', headers: shown },
      },
    ],
    effects: 1,
  },
]
