import 'fake-indexeddb/auto'
import { IDBFactory as FakeFactory, forceCloseDatabase } from 'fake-indexeddb'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { Clock, IntentStore } from '../../src/ports.ts'
import { type IndexedDbStoreOptions, indexedDbAvailable, indexedDbStore } from '../../src/stores/indexeddb.ts'
import { storeContract, type VirtualClock, virtualClock } from '../../src/testing/index.ts'
import { rowNamed } from './fixtures/rows.ts'

storeContract(
  'indexeddb',
  () => {
    const factory = new FakeFactory()
    return { open: () => indexedDbStore({ factory }) }
  },
  { describe, it, expect },
)

describe('indexeddb store', () => {
  let factory: IDBFactory
  let clock: VirtualClock
  /** Every connection that the stores opened, in order. */
  let connections: IDBDatabase[]

  beforeEach(() => {
    factory = new FakeFactory()
    clock = virtualClock()
    connections = []
    vi.spyOn(factory, 'open').mockImplementation((...args) => {
      const request = FakeFactory.prototype.open.apply(factory, args)
      request.addEventListener('success', () => connections.push(request.result))
      return request
    })
  })

  // A timer that is left behind would keep a page or a process awake.
  afterEach(() => expect(clock.pending()).toBe(0))

  function openStore(options: IndexedDbStoreOptions = {}): IntentStore {
    return indexedDbStore({ factory, clock, ...options })
  }

  const unavailable = { code: 'store_failure', reason: 'unavailable', written: 'no' }
  const reloadNeeded = { ...unavailable, message: expect.stringContaining('Reload needed') }
  const timeout = { code: 'store_failure', reason: 'timeout', written: 'no' }

  it('says what it is, and opens nothing before the first call', () => {
    expect(openStore()).toMatchObject({ kind: 'indexeddb', durable: true, location: 'indexeddb:samekey' })
    expect(openStore({ databaseName: 'other' }).location).toBe('indexeddb:other')
    expect(factory.open).not.toHaveBeenCalled()
  })

  it('opens once for calls that come together', async () => {
    const store = openStore()
    await Promise.all([store.insert(rowNamed('a'), {}), store.insert(rowNamed('b'), {}), store.nextDueAt('c', 's')])
    expect(factory.open).toHaveBeenCalledTimes(1)
  })

  it('keeps rows when it is closed and opened again', async () => {
    const first = openStore()
    const { row } = await first.insert(rowNamed('a'), { request: new Uint8Array([1]) })
    await first.close()
    const second = openStore()
    expect(await second.byKey(row)).toEqual(row)
    expect(await second.blob(row, 'request')).toEqual(new Uint8Array([1]))
  })

  describe('B30: the connection was closed underneath', () => {
    it('without an event: opens again, and the call succeeds once', async () => {
      const store = openStore()
      await store.insert(rowNamed('a'), {})
      connections[0]?.close()
      expect(await store.insert(rowNamed('b'), {})).toMatchObject({ inserted: true, row: { seq: 2 } })
      expect(factory.open).toHaveBeenCalledTimes(2)
      expect(await store.list('client', { limit: 9 })).toHaveLength(2)
    })

    it('for several calls at once: opens again once', async () => {
      const store = openStore()
      await store.insert(rowNamed('a'), {})
      connections[0]?.close()
      const results = await Promise.all(['b', 'c', 'd'].map((name) => store.insert(rowNamed(name), {})))
      expect(results.every((result) => result.inserted)).toBe(true)
      expect(factory.open).toHaveBeenCalledTimes(2)
    })

    it('with an event: opens again at the next call', async () => {
      const store = openStore()
      await store.insert(rowNamed('a'), {})
      forceCloseDatabase(connections[0] as never)
      expect(await store.insert(rowNamed('b'), {})).toMatchObject({ inserted: true })
      expect(factory.open).toHaveBeenCalledTimes(2)
    })

    it('time and again: says so after one more try, and writes nothing', async () => {
      const store = openStore()
      await store.insert(rowNamed('a'), {})
      const transaction = vi.spyOn(IDBDatabase.prototype, 'transaction').mockImplementation(() => {
        throw new DOMException('The database connection is closing', 'InvalidStateError')
      })
      await expect(store.insert(rowNamed('b'), {})).rejects.toMatchObject(unavailable)
      expect(factory.open).toHaveBeenCalledTimes(2)
      transaction.mockRestore()
      expect(await store.byKey(rowNamed('b'))).toBe(undefined)
    })
  })

  describe('B31: the database does not answer', () => {
    it('an open that never settles is given up within the time-out, and tried again at the next call', async () => {
      scriptedOpen()
      const store = openStore({ timeoutMs: 800 })
      const call = watch(store.insert(rowNamed('a'), {}))
      await clock.advance(799)
      expect(call.settled).toBe(false)
      await clock.advance(1)
      expect(call.outcome).toMatchObject(timeout)
      expect(await store.insert(rowNamed('a'), {})).toMatchObject({ inserted: true })
    })

    it('an open that settles after the time-out serves the next call', async () => {
      await openStore().insert(rowNamed('a'), {})
      const request = scriptedOpen()
      const store = openStore()
      const call = watch(store.byKey(rowNamed('a')))
      await clock.advance(5000)
      expect(call.outcome).toMatchObject(timeout)
      request.succeed(await databaseAt(1))
      expect(await store.byKey(rowNamed('a'))).toMatchObject({ revision: 1 })
      expect(factory.open).toHaveBeenCalledTimes(2)
    })

    it('an open that settles after another one has succeeded is closed again', async () => {
      const request = scriptedOpen()
      const store = openStore()
      const call = watch(store.byKey(rowNamed('a')))
      await clock.advance(5000)
      expect(call.outcome).toMatchObject(timeout)
      await store.insert(rowNamed('a'), {})
      const late = await databaseAt(1)
      request.succeed(late)
      expect(() => late.transaction('intents')).toThrow(expect.objectContaining({ name: 'InvalidStateError' }))
      expect(await store.byKey(rowNamed('a'))).toMatchObject({ revision: 1 })
    })

    it('an open that settles after the store was closed is closed, too', async () => {
      const request = scriptedOpen()
      const store = openStore()
      const call = watch(store.nextDueAt('client', 'scope'))
      const closed = watch(store.close())
      await clock.advance(5000)
      expect([call.settled, closed.settled]).toEqual([true, true])
      const late = { close: vi.fn() }
      request.succeed(late as unknown as IDBDatabase)
      expect(late.close).toHaveBeenCalledOnce()
    })

    it('P18: a write that waits for another tab without end is aborted, and surely not written', async () => {
      clock = virtualClock({ settle: someTurns })
      const store = openStore()
      await store.insert(rowNamed('a'), {})
      const release = holdLock(await databaseAt(1))
      const call = watch(store.update(rowNamed('a', { state: 'sending' }), { revision: 1, token: null }))
      await clock.advance(4999)
      expect(call.settled).toBe(false)
      await clock.advance(1)
      expect(call.outcome).toMatchObject(timeout)
      release()
      expect(await store.byKey(rowNamed('a'))).toMatchObject({ state: 'queued', revision: 1 })
    })

    it('P18: a write that can no longer be aborted may have been written, and the failure says so', async () => {
      const store = openStore()
      await store.insert(rowNamed('a'), {})
      const transaction = hungTransaction('readwrite')
      const call = watch(store.update(rowNamed('a'), { revision: 1, token: null }))
      await clock.advance(5000)
      expect(transaction.abort).toHaveBeenCalledOnce()
      expect(call.outcome).toMatchObject({ ...timeout, written: 'maybe' })
    })

    it('a read writes nothing, whatever becomes of it', async () => {
      const store = openStore()
      await store.insert(rowNamed('a'), {})
      hungTransaction('readonly')
      const call = watch(store.byKey(rowNamed('a')))
      await clock.advance(5000)
      expect(call.outcome).toMatchObject(timeout)
    })

    it('a time-out that is overdue after a freeze leaves the database time to answer', async () => {
      await openStore().insert(rowNamed('a'), {})
      const request = scriptedOpen()
      const timers: (() => void)[] = []
      const timer: Clock['timer'] = (_, run) => {
        timers.push(run)
        return { cancel: () => {} }
      }
      const call = watch(openStore({ clock: { timer } }).byKey(rowNamed('a')))
      timers[0]?.()
      request.succeed(await databaseAt(1))
      await clock.advance(0)
      expect(call.outcome).toMatchObject({ revision: 1 })
    })

    /** A transaction that answers nothing and does not let itself be aborted. */
    function hungTransaction(mode: IDBTransactionMode) {
      const silent = { get: () => ({}), index: () => silent }
      const transaction = {
        mode,
        objectStore: () => silent,
        addEventListener: () => {},
        abort: vi.fn(() => {
          throw new DOMException('committing', 'InvalidStateError')
        }),
      }
      vi.spyOn(IDBDatabase.prototype, 'transaction').mockReturnValueOnce(transaction as never)
      return transaction
    }

    /** Keeps a write transaction going, so that no other one begins. */
    function holdLock(database: IDBDatabase): () => void {
      let held = true
      const store = database.transaction('intents', 'readwrite').objectStore('intents')
      const again = () => {
        if (held) store.get(['seq']).onsuccess = again
      }
      again()
      return () => {
        held = false
      }
    }

    async function someTurns(): Promise<void> {
      for (let turn = 0; turn < 20; turn += 1) await new Promise(setImmediate)
    }
  })

  describe('B32: no space left', () => {
    it('on a write: rejects with `quota`, and nothing is written', async () => {
      const store = openStore()
      await store.insert(rowNamed('a'), {})
      abortNextWrite(new DOMException('full', 'QuotaExceededError'))
      const failure = { code: 'store_failure', reason: 'quota', written: 'no' }
      await expect(store.insert(rowNamed('b'), {})).rejects.toMatchObject(failure)
      expect(await store.byKey(rowNamed('b'))).toBe(undefined)
      expect(await store.insert(rowNamed('c'), {})).toMatchObject({ inserted: true })
    })

    it('on opening: the same', async () => {
      scriptedOpen().fail(new DOMException('full', 'QuotaExceededError'))
      const failure = { code: 'store_failure', reason: 'quota', written: 'no' }
      await expect(openStore().insert(rowNamed('a'), {})).rejects.toMatchObject(failure)
    })
  })

  describe('B33: IndexedDB is missing or refuses', () => {
    it('missing: every call says so, and it is known beforehand', async () => {
      vi.stubGlobal('indexedDB', undefined)
      const store = indexedDbStore({ clock })
      await expect(store.insert(rowNamed('a'), {})).rejects.toMatchObject(unavailable)
      await expect(store.due('client', 'scope', 1, 1)).rejects.toMatchObject(unavailable)
      expect(await indexedDbAvailable({ clock })).toBe(false)
    })

    it('throwing on access: the same', async () => {
      const access = vi.spyOn(globalThis, 'indexedDB', 'get').mockImplementation(() => {
        throw new DOMException('denied', 'SecurityError')
      })
      await expect(indexedDbStore({ clock }).insert(rowNamed('a'), {})).rejects.toMatchObject(unavailable)
      expect(await indexedDbAvailable({ clock })).toBe(false)
      expect(access).toHaveBeenCalled()
    })

    it('failing on open, as in some private modes: the same', async () => {
      scriptedOpen().fail(new DOMException('not in private mode', 'InvalidStateError'))
      await expect(openStore().insert(rowNamed('a'), {})).rejects.toMatchObject(unavailable)
      scriptedOpen().fail(new DOMException('not in private mode', 'InvalidStateError'))
      expect(await indexedDbAvailable({ factory, clock })).toBe(false)
    })

    it('silent: known within the time-out', async () => {
      scriptedOpen()
      const call = watch(indexedDbAvailable({ factory, clock, timeoutMs: 300 }))
      await clock.advance(300)
      expect(call.outcome).toBe(false)
    })

    it('there: known too, and nothing is left behind', async () => {
      expect(await indexedDbAvailable({ factory, clock })).toBe(true)
      const keys = (await databaseAt(1)).transaction('intents').objectStore('intents').getAllKeys()
      await clock.advance(0)
      expect(keys.result).toEqual([])
    })
  })

  describe('B34: a newer version of the page', () => {
    it('gets the database at once; the older page completes what was begun, then asks for a reload', async () => {
      const store = openStore()
      await store.insert(rowNamed('a'), {})
      const inFlight = store.insert(rowNamed('b'), {})
      const newer = await databaseAt(2)
      expect(await inFlight).toMatchObject({ inserted: true })
      await expect(store.insert(rowNamed('c'), {})).rejects.toMatchObject(reloadNeeded)
      await expect(store.byKey(rowNamed('a'))).rejects.toMatchObject(reloadNeeded)
      // Asking again would wait for as long as the newer version takes to change the layout.
      expect(factory.open).toHaveBeenCalledTimes(1)
      const keys = newer.transaction('intents').objectStore('intents').getAllKeys()
      await clock.advance(0)
      expect(keys.result).toContainEqual(['row', 'client', 'scope', 'key-b'])
    })

    it('that was there before: asks for a reload, and leaves the database as it is', async () => {
      const newer = await databaseAt(7)
      newer.close()
      await expect(openStore().insert(rowNamed('a'), {})).rejects.toMatchObject(reloadNeeded)
      expect(await factory.databases()).toEqual([{ name: 'samekey', version: 7 }])
    })

    it('that has to wait for an older tab names it when it gives up', async () => {
      const request = scriptedOpen()
      const call = watch(openStore().insert(rowNamed('a'), {}))
      request.block()
      await clock.advance(5000)
      expect(call.outcome).toMatchObject({ ...timeout, message: expect.stringContaining('another tab') })
    })

    it('is not what a deletion is: the store opens an empty database', async () => {
      const store = openStore()
      await store.insert(rowNamed('a'), {})
      factory.deleteDatabase('samekey')
      await clock.advance(0)
      expect(await store.byKey(rowNamed('a'))).toBe(undefined)
      expect(await store.insert(rowNamed('b'), {})).toMatchObject({ row: { seq: 1 } })
    })
  })

  describe('B40: durability', () => {
    it('every write asks for strict durability, and resolves only after the transaction is complete', async () => {
      const store = openStore()
      await store.nextDueAt('client', 'scope')
      const order: string[] = []
      const begin = IDBDatabase.prototype.transaction
      const transaction = vi.spyOn(IDBDatabase.prototype, 'transaction').mockImplementation(function (
        this: IDBDatabase,
        ...args
      ) {
        const begun = begin.apply(this, args)
        begun.addEventListener('complete', () => order.push('complete'))
        return begun
      })
      const given = rowNamed('a')
      for (const write of [
        () => store.insert(given, { request: new Uint8Array([1]) }),
        () => store.update(given, { revision: 1, token: null }),
        () => store.remove(given, { revision: 2 }),
      ]) {
        await write()
        order.push('resolved')
        expect(transaction.mock.lastCall).toEqual(['intents', 'readwrite', { durability: 'strict' }])
      }
      expect(order).toEqual(['complete', 'resolved', 'complete', 'resolved', 'complete', 'resolved'])
    })

    it('stores bytes, never a Blob', async () => {
      const put = vi.spyOn(IDBObjectStore.prototype, 'put')
      await openStore().insert(rowNamed('a'), { request: new Uint8Array([1]), answer: new Uint8Array([2]) })
      const values = put.mock.calls.filter(([, key]) => Array.isArray(key) && key[0] === 'blob').map(([value]) => value)
      expect(values).toEqual([new Uint8Array([1]), new Uint8Array([2])])
    })
  })

  describe('a transaction that is aborted', () => {
    it('P18: with the connection: it may have been written, and the failure says so', async () => {
      const store = openStore()
      await store.insert(rowNamed('a'), {})
      abortNextWrite(new DOMException('Connection to Indexed Database server lost', 'UnknownError'))
      await expect(store.insert(rowNamed('b'), {})).rejects.toMatchObject({ ...unavailable, written: 'maybe' })
    })

    it('because of what was to be written: nothing was, blobs included', async () => {
      const store = openStore()
      const { row } = await store.insert(rowNamed('a'), { request: new Uint8Array([1]) })
      const broken = { ...row, leaseUntil: (() => {}) as unknown as number }
      const call = store.update(broken, { revision: 1, token: null }, { request: new Uint8Array([2]) })
      await expect(call).rejects.toMatchObject({ code: 'store_failure', reason: 'other', written: 'no' })
      expect(await store.byKey(row)).toEqual(row)
      expect(await store.blob(row, 'request')).toEqual(new Uint8Array([1]))
    })
  })

  /** Opens the database as another version of the page would: version 2 and above stand for newer ones. */
  async function databaseAt(version: number): Promise<IDBDatabase> {
    const request = FakeFactory.prototype.open.call(factory, 'samekey', version)
    return new Promise((resolve, reject) => {
      request.onsuccess = () => resolve(request.result)
      request.onerror = () => reject(request.error)
    })
  }

  /** The next open does only what it is told. */
  function scriptedOpen() {
    const request: { -readonly [member in keyof IDBOpenDBRequest]?: IDBOpenDBRequest[member] } = {}
    vi.mocked(factory.open).mockReturnValueOnce(request as never)
    return {
      succeed(result: IDBDatabase) {
        request.result = result
        request.onsuccess?.call(request as IDBOpenDBRequest, new Event('success'))
      },
      /** At once when the store asks. */
      fail(error: DOMException) {
        request.error = error
        Object.defineProperty(request, 'onerror', { set: (tell) => queueMicrotask(() => tell(new Event('error'))) })
      },
      block() {
        request.onblocked?.call(request as IDBOpenDBRequest, new Event('blocked') as IDBVersionChangeEvent)
      },
    }
  }

  /** The next write ends its transaction with this error, as a browser does by itself. */
  function abortNextWrite(error: DOMException): void {
    const put = vi.spyOn(IDBObjectStore.prototype, 'put').mockImplementation(function (this: IDBObjectStore) {
      put.mockRestore()
      const { transaction } = this
      Object.defineProperty(transaction, 'error', { value: error })
      transaction.abort()
      return {} as IDBRequest<IDBValidKey>
    })
  }
})

/** What has become of a call, without waiting for it. */
function watch(call: Promise<unknown>): { settled: boolean; outcome: unknown } {
  const watched: { settled: boolean; outcome: unknown } = { settled: false, outcome: undefined }
  const settle = (outcome: unknown) => Object.assign(watched, { settled: true, outcome })
  call.then(settle, settle)
  return watched
}
