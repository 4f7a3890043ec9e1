import { describe, expect, it } from 'vitest'
import { operationIdOf } from '../../src/protocol/operation-id.ts'

describe('operation ids', () => {
  const parts = { tenant: 'acme', principal: 'ann', operation: 'orders.create', key: 'k-1', call: 'charge' }

  it('P65: is the same for ever: a takeover by a later release must not send another one', () => {
    expect(operationIdOf(parts)).toBe('dc72dd61-2fae-5552-9374-d1811173b602')
  })

  it('P65: every part counts, and none runs into its neighbour', () => {
    const ids = [
      parts,
      { ...parts, tenant: 'acmea', principal: 'nn' },
      { ...parts, tenant: 'other' },
      { ...parts, principal: 'bob' },
      { ...parts, operation: 'orders.ship' },
      { ...parts, key: 'k-2' },
      { ...parts, call: 'refund' },
    ].map(operationIdOf)
    expect(new Set(ids).size).toBe(ids.length)
  })
})
