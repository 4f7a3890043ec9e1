/** Reads a store file back, in a process that has nothing to do with those that wrote it. */
import { writeSync } from 'node:fs'
import { sqliteStore } from 'samekey/sqlite'
import { jobOf } from '../../examples/demo/child.ts'
import { decodeRecord } from '../../src/protocol/codec.ts'
import { isInDoubt } from '../../src/protocol/record.ts'
import { CLIENT_NAME, type StoredIntent } from './words.ts'

/** What it is started with. */
export interface ReaderJob {
  readonly storeFile: string
  readonly account: string
}

const pageSize = 500
const { storeFile, account } = await jobOf<ReaderJob>()
const store = sqliteStore(storeFile)
for (let afterSeq = 0, isMore = true; isMore; ) {
  const rows = await store.list(CLIENT_NAME, { scope: account, afterSeq, limit: pageSize })
  isMore = rows.length === pageSize
  for (const row of rows) {
    afterSeq = row.seq
    const decoded = decodeRecord(row.format, row.data)
    const record = decoded.ok ? decoded.record : null
    const body = record?.answer?.body === 'stored' ? await store.blob(row, 'answer') : undefined
    const intent: StoredIntent = {
      account,
      intent: row.id,
      key: row.key,
      current: row.current,
      // What cannot be read has no end that anybody could be told.
      state: record?.state.name ?? 'damaged',
      because: record !== null && 'because' in record.state ? record.state.because : null,
      inDoubt: record !== null && isInDoubt(record),
      attempts: record?.attempts ?? 0,
      status: record?.answer?.status ?? null,
      body: body === undefined ? null : new TextDecoder().decode(body),
      history: record?.history ?? [],
    }
    writeSync(1, `${JSON.stringify(intent)}\n`)
  }
}
await store.close()
process.disconnect()
