import { type ChildProcess, spawn } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { DatabaseSync } from 'node:sqlite'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { IntentStore } from '../../src/ports.ts'
import { type SqliteStoreOptions, sqliteStore } from '../../src/stores/sqlite.ts'
import { storeContract } from '../../src/testing/index.ts'
import { rowNamed } from './fixtures/rows.ts'

storeContract(
  'sqlite',
  () => {
    const folder = mkdtempSync(join(tmpdir(), 'samekey-'))
    return {
      open: () => sqliteStore(join(folder, 'outbox.db')),
      dispose: () => rmSync(folder, { recursive: true }),
    }
  },
  { describe, it, expect },
)

describe('sqlite store', () => {
  let folder: string
  let path: string
  const opened: IntentStore[] = []

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'samekey-'))
    path = join(folder, 'outbox.db')
  })

  afterEach(async () => {
    await Promise.all(opened.splice(0).map((store) => store.close()))
    rmSync(folder, { recursive: true })
  })

  function openStore(options?: SqliteStoreOptions, at = path): IntentStore {
    const store = sqliteStore(at, options)
    opened.push(store)
    return store
  }

  function commits(): number {
    return vi.mocked(DatabaseSync.prototype.exec).mock.calls.filter(([sql]) => sql === 'COMMIT').length
  }

  describe('durability', () => {
    it('P17: says that it is durable, and asks SQLite for it', async () => {
      const exec = vi.spyOn(DatabaseSync.prototype, 'exec')
      const store = openStore()
      expect(store).toMatchObject({ kind: 'sqlite', durable: true })
      await store.insert(rowNamed('one'), {})
      expect(exec.mock.calls.flat().join()).toContain('synchronous = FULL')
      const db = new DatabaseSync(path)
      expect(db.prepare('PRAGMA journal_mode').get()).toEqual({ journal_mode: 'wal' })
      db.close()
    })

    it('keeps rows and blobs when it is closed and opened again', async () => {
      const first = openStore()
      const given = rowNamed('one', { dueAt: 5 })
      const result = await first.insert(given, { request: new Uint8Array([1]) })
      await first.close()
      const second = openStore()
      expect(await second.byKey(given)).toEqual(result.row)
      expect(await second.due('client', 'scope', 5, 1)).toEqual([result.row])
      expect(await second.blob(given, 'request')).toEqual(new Uint8Array([1]))
    })

    it('P17: has every acknowledged row after the process was killed in the middle', async () => {
      const child = writer('endless', 'killed')
      const acknowledged: string[] = []
      for await (const line of lines(child)) {
        acknowledged.push(line)
        if (acknowledged.length === 60) child.kill('SIGKILL')
      }
      await exitOf(child)
      expect(child.signalCode).toBe('SIGKILL')
      const store = openStore()
      for (const [at, key] of acknowledged.entries()) {
        const name = { client: 'client', scope: 'scope', key }
        expect((await store.byKey(name))?.key).toBe(key)
        expect(await store.blob(name, 'request')).toEqual(new Uint8Array(1000).fill(at))
      }
      // At most the one that was under way when it died is there without having been acknowledged.
      const listed = await store.list('client', { limit: 10_000 })
      expect([acknowledged.length, acknowledged.length + 1]).toContain(listed.length)
    })
  })

  describe('group commit', () => {
    it('makes one commit of all writes that come together', async () => {
      const store = openStore()
      await store.insert(rowNamed('before'), {})
      vi.spyOn(DatabaseSync.prototype, 'exec')
      const results = await Promise.all(
        Array.from({ length: 100 }, (_, at) => store.insert(rowNamed(`${at}`), { request: new Uint8Array([at]) })),
      )
      expect(results.every((result) => result.inserted)).toBe(true)
      expect(commits()).toBe(1)
    })

    it('makes one commit for writers that go on together, too', async () => {
      const store = openStore()
      vi.spyOn(DatabaseSync.prototype, 'exec')
      await Promise.all(
        Array.from({ length: 20 }, async (_, at) => {
          const { row } = await store.insert(rowNamed(`${at}`), {})
          await store.byKey(row)
          await store.update(row, { revision: 1, token: null })
        }),
      )
      // The first one also creates the tables.
      expect(commits()).toBe(1 + 2)
    })

    it('lets a write fail alone', async () => {
      const store = openStore()
      const { row } = await store.insert(rowNamed('a'), {})
      const broken = { ...row, revision: 1, dueAt: 'soon' as unknown as number }
      const [failed, changed, inserted] = await Promise.allSettled([
        store.update(broken, { revision: 1, token: null }, { request: new Uint8Array([1]) }),
        store.update({ ...row, state: 'changed' }, { revision: 1, token: null }),
        store.insert(rowNamed('b'), {}),
      ])
      expect(failed).toMatchObject({
        status: 'rejected',
        reason: { code: 'store_failure', reason: 'other', written: 'no' },
      })
      expect(changed).toMatchObject({ status: 'fulfilled', value: { state: 'changed', revision: 2 } })
      expect(inserted).toMatchObject({ status: 'fulfilled', value: { inserted: true } })
      expect(await store.blob(row, 'request')).toBe(undefined)
    })

    it('P18: rejects all with `maybe` when the commit fails and nobody knows how far it came', async () => {
      const store = openStore()
      await store.insert(rowNamed('before'), {})
      failNextCommit({ errcode: 1034, message: 'disk I/O error' })
      const results = await Promise.allSettled([store.insert(rowNamed('a'), {}), store.insert(rowNamed('b'), {})])
      const failure = { code: 'store_failure', reason: 'unavailable', written: 'maybe' }
      expect(results).toMatchObject([{ reason: failure }, { reason: failure }])
      // And goes on with a fresh connection.
      expect(await store.insert(rowNamed('c'), {})).toMatchObject({ inserted: true })
      expect(await store.byKey(rowNamed('a'))).toBe(undefined)
    })

    it('B32: rejects all with `quota` and `no` when there is no room for the commit', async () => {
      const store = openStore()
      await store.insert(rowNamed('before'), {})
      failNextCommit({ errcode: 13, message: 'database or disk is full' })
      const results = await Promise.allSettled([store.insert(rowNamed('a'), {}), store.insert(rowNamed('b'), {})])
      const failure = { code: 'store_failure', reason: 'quota', written: 'no' }
      expect(results).toMatchObject([{ reason: failure }, { reason: failure }])
      expect(await store.list('client', { limit: 9 })).toHaveLength(1)
    })

    it('B32: says `quota` when a write fills the disk, keeps nothing of it, and goes on', async () => {
      const prepare = vi.spyOn(DatabaseSync.prototype, 'prepare')
      const store = openStore()
      await store.insert(rowNamed('before'), {})
      const db = prepare.mock.contexts[0] as DatabaseSync
      db.exec('PRAGMA max_page_count = 40')
      const large = store.insert(rowNamed('large'), { request: new Uint8Array(1024 * 1024) })
      await expect(large).rejects.toMatchObject({ code: 'store_failure', reason: 'quota', written: 'no' })
      expect(await store.insert(rowNamed('small'), {})).toMatchObject({ inserted: true })
      expect(await store.byKey(rowNamed('large'))).toBe(undefined)
    })

    function failNextCommit(facts: { errcode: number; message: string }): void {
      const exec = DatabaseSync.prototype.exec
      const spy = vi.spyOn(DatabaseSync.prototype, 'exec').mockImplementation(function (this: DatabaseSync, sql) {
        if (sql !== 'COMMIT') return exec.call(this, sql)
        spy.mockRestore()
        throw Object.assign(new Error(facts.message), { code: 'ERR_SQLITE_ERROR', errcode: facts.errcode })
      })
    }
  })

  describe('several processes', () => {
    it('B35: two processes insert 200 rows each at once into a new file: 400 readable rows', {
      timeout: 30_000,
    }, async () => {
      await together(writer('many', 'a', 200), writer('many', 'b', 200))
      const store = openStore()
      const rows = await store.list('client', { limit: 1000 })
      expect(rows).toHaveLength(400)
      expect(new Set(rows.map((row) => row.seq)).size).toBe(400)
      for (const row of rows) {
        expect(row.data).toBe(`data of ${row.key.slice('key-'.length)}`)
        expect(await store.blob(row, 'request')).toEqual(new TextEncoder().encode(row.key))
      }
    })

    it('B36: two processes update one row 100 times each: none is lost', { timeout: 30_000 }, async () => {
      const store = openStore()
      const { row } = await store.insert(rowNamed('counter', { data: '0' }), {})
      await together(writer('count', 'counter', 100), writer('count', 'counter', 100))
      expect(await store.byKey(row)).toMatchObject({ data: '200', revision: 201 })
    })

    it('says `timeout` and `no` when another process holds the file for too long, and goes on later', async () => {
      const store = openStore({ busyTimeoutMs: 1 })
      await store.insert(rowNamed('before'), {})
      const rival = new DatabaseSync(path)
      rival.exec('BEGIN IMMEDIATE')
      const refused = store.insert(rowNamed('a'), {})
      await expect(refused).rejects.toMatchObject({ code: 'store_failure', reason: 'timeout', written: 'no' })
      // Readers do not wait.
      expect(await store.byKey(rowNamed('before'))).toMatchObject({ revision: 1 })
      rival.exec('COMMIT')
      rival.close()
      expect(await store.insert(rowNamed('a'), {})).toMatchObject({ inserted: true })
    })
  })

  describe('the file', () => {
    it('is readable by its owner alone, and so are the files beside it', async () => {
      await openStore().insert(rowNamed('one'), {})
      for (const file of [path, `${path}-wal`, `${path}-shm`]) expect(statSync(file).mode & 0o777).toBe(0o600)
    })

    it('is not opened before the first call', () => {
      openStore()
      expect(existsSync(path)).toBe(false)
    })

    it('is known by its location, whatever leads to it', () => {
      mkdirSync(join(folder, 'real'))
      symlinkSync(join(folder, 'real'), join(folder, 'link'))
      const direct = openStore({}, join(folder, 'real', 'x.db'))
      expect(openStore({}, join(folder, 'link', '..', 'link', 'x.db')).location).toBe(direct.location)
      expect(openStore({}, path).location).not.toBe(direct.location)
    })

    it('of a newer version is refused and left as it is', async () => {
      await openStore().insert(rowNamed('one'), {})
      await opened[0]?.close()
      const db = new DatabaseSync(path)
      db.exec('PRAGMA user_version = 2; CREATE TABLE later (x)')
      db.close()
      const before = readFileSync(path)
      const store = openStore()
      const failure = {
        code: 'store_failure',
        reason: 'unavailable',
        written: 'no',
        message: expect.stringContaining('newer version'),
      }
      await expect(store.list('client', { limit: 1 })).rejects.toMatchObject(failure)
      await expect(store.insert(rowNamed('two'), {})).rejects.toMatchObject(failure)
      expect(readFileSync(path).equals(before)).toBe(true)
      expect(existsSync(`${path}-wal`)).toBe(false)
    })

    it.each([
      ['without a version', 'CREATE TABLE users (name)'],
      ['with a version of its own', 'CREATE TABLE users (name); PRAGMA user_version = 7'],
      ['with our version number', 'CREATE TABLE users (name); PRAGMA user_version = 1'],
    ])('of another program is refused and left as it is: %s', async (_, sql) => {
      const db = new DatabaseSync(path)
      db.exec(sql)
      db.close()
      const before = readFileSync(path)
      const failure = { reason: 'unavailable', written: 'no', message: expect.stringContaining('another program') }
      await expect(openStore().insert(rowNamed('one'), {})).rejects.toMatchObject(failure)
      expect(readFileSync(path).equals(before)).toBe(true)
    })

    it('that is no database is refused, with what to do', async () => {
      const file = join(folder, 'notes.txt')
      writeFileSync(file, 'milk, eggs, bread\n'.repeat(100))
      const failure = { code: 'store_failure', reason: 'unavailable', written: 'no' }
      await expect(openStore({}, file).insert(rowNamed('one'), {})).rejects.toMatchObject(failure)
      expect(readFileSync(file, 'utf8').startsWith('milk')).toBe(true)
    })

    it('in a folder that is not there is refused, and works once the folder is there', async () => {
      const store = openStore({}, join(folder, 'later', 'x.db'))
      const failure = { code: 'store_failure', reason: 'unavailable', written: 'no' }
      await expect(store.insert(rowNamed('one'), {})).rejects.toMatchObject(failure)
      await expect(store.nextDueAt('client', 'scope')).rejects.toMatchObject(failure)
      mkdirSync(join(folder, 'later'))
      expect(await store.insert(rowNamed('one'), {})).toMatchObject({ inserted: true })
    })

    it.each(['', ':memory:', 'file:outbox.db'])('has to be one: %j is a ConfigError', (name) => {
      expect(() => sqliteStore(name)).toThrowError(expect.objectContaining({ code: 'config', option: 'path' }))
    })

    it('keeps the permissions that its owner gave it', async () => {
      await openStore().insert(rowNamed('one'), {})
      await opened[0]?.close()
      chmodSync(path, 0o640)
      await openStore().insert(rowNamed('two'), {})
      expect(statSync(path).mode & 0o777).toBe(0o640)
    })
  })

  it('leaves no blob of a removed row in the file', async () => {
    const store = openStore()
    const { row } = await store.insert(rowNamed('one'), { request: new Uint8Array([1]), answer: new Uint8Array([2]) })
    await store.insert(rowNamed('two'), { request: new Uint8Array([3]) })
    await store.remove(row, { revision: 1 })
    const db = new DatabaseSync(path)
    expect(db.prepare('SELECT bytes FROM blobs').all()).toEqual([{ bytes: new Uint8Array([3]) }])
    db.close()
  })

  it('searches through indexes: no statement reads a whole table or sorts', async () => {
    const prepare = vi.spyOn(DatabaseSync.prototype, 'prepare')
    const store = openStore()
    await store.insert(rowNamed('one'), {})
    for (const scope of ['scope', undefined]) {
      for (const open of [true, false, undefined]) {
        for (const id of ['id', undefined]) {
          const filter = { ...(scope && { scope }), ...(open !== undefined && { open }), ...(id && { id }) }
          await store.list('client', { ...filter, states: ['queued'], afterSeq: 0, limit: 10 })
        }
      }
    }
    const statements = prepare.mock.calls
      .map(([sql]) => sql)
      .filter((sql) => /\b(FROM|UPDATE) (rows|blobs)\b/.test(sql))
    expect(statements.length).toBeGreaterThan(20)
    const db = new DatabaseSync(path)
    for (const sql of statements) {
      const plan = db.prepare(`EXPLAIN QUERY PLAN ${sql}`).all()
      const steps = plan.map((step) => String(step.detail)).filter((step) => !/json_each|CONSTANT ROW/.test(step))
      for (const step of steps) expect(`${step} <- ${sql}`).not.toMatch(/^SCAN (?!\()|TEMP B-TREE/)
    }
    db.close()
  })

  /** Lets processes begin at the same time, and waits for all to end well. */
  async function together(...children: ChildProcess[]): Promise<void> {
    await Promise.all(children.map((child) => firstLine(child, /^ready$/)))
    const done = children.map((child) => firstLine(child, /^done [12]00$/))
    for (const child of children) child.stdin?.write('go\n')
    await Promise.all(done)
    await Promise.all(children.map(exitOf))
  }

  function writer(mode: 'many' | 'count' | 'endless', name: string, count = 0): ChildProcess {
    const script = fileURLToPath(new URL('./fixtures/sqlite-writer.ts', import.meta.url))
    return spawn(process.execPath, [script, path, mode, name, `${count}`], { stdio: ['pipe', 'pipe', 'inherit'] })
  }
})

function lines(child: ChildProcess): AsyncIterable<string> {
  if (child.stdout === null) throw new Error('the process has no output')
  return createInterface({ input: child.stdout })
}

async function firstLine(child: ChildProcess, expected: RegExp): Promise<void> {
  const line = await new Promise<string>((resolve, reject) => {
    child.stdout?.once('data', (data) => resolve(String(data).trim()))
    child.once('exit', (code) => reject(new Error(`the process ended with ${code}`)))
  })
  expect(line).toMatch(expected)
}

function exitOf(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve()
  return new Promise((resolve) => child.once('exit', () => resolve()))
}
