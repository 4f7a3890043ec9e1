import { commitThenDrop, createMockServer, cutBody, dropBeforeCommit, hang } from 'samekey/msw'
import { afterEach, describe, expect, it } from 'vitest'
import { type MockOnSocket, mockOnSocket } from '../support/mock-on-socket.ts'
import { brokenBy, order } from './send.ts'

let socket: MockOnSocket | undefined

afterEach(async () => {
  await socket?.close()
})

describe('B128: the same faults behind a real socket', () => {
  it('lost before and after the commit is the same reset to the client, with 0 and 1 effects', async () => {
    const mock = createMockServer()
    socket = await mockOnSocket(mock)
    const send = () => fetch(`${socket?.origin}/orders`, order())
    mock.faults.next(dropBeforeCommit(), commitThenDrop(), cutBody())
    expect([await brokenBy(send()), mock.effects.total]).toEqual(['ECONNRESET', 0])
    expect([await brokenBy(send()), mock.effects.total]).toEqual(['ECONNRESET', 1])
    const cut = await send()
    expect([cut.status, cut.headers.get('idempotent-replayed')]).toEqual([201, 'true'])
    await expect(cut.text()).rejects.toThrow(TypeError)
    expect(await (await send()).json()).toEqual({ id: 1, item: 'tea' })
    expect(mock.effects.total).toBe(1)
  })

  it('a client that gives up is seen by the mock', async () => {
    const mock = createMockServer()
    socket = await mockOnSocket(mock)
    mock.faults.next(hang('after'))
    await expect(fetch(`${socket.origin}/orders`, { ...order(), signal: AbortSignal.timeout(100) })).rejects.toThrow()
    await expect.poll(() => mock.requests[0]?.delivered).toBe('aborted')
    expect(mock.effects.total).toBe(1)
  })
})
