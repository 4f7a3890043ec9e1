/** The holes that no schedule of the simulator can reach: why, and the test that covers each of them. */
import type { HoleName } from './hole.ts'

export interface Elsewhere {
  readonly hole: HoleName
  /** What happens, in one sentence. */
  readonly schedule: string
  /** The promises that close it. */
  readonly rule: string
  /** Why it cannot arise in the simulator. */
  readonly why: string
  readonly test: {
    /** Path from the project's root. */
    readonly file: string
    readonly title: string
  }
}

export const elsewhere: readonly Elsewhere[] = [
  {
    hole: 'H11',
    schedule: 'The key is taken when a request claims it, and its row is reaped before the request reads it.',
    rule: 'section 12, step 4',
    why: 'it takes two statements of one transaction in a database, with a reaper between them; in the memory store of the simulator nothing comes in between',
    test: {
      file: 'test/server/postgres.test.ts',
      title: 'H11: a row that is reaped between insert and read: expired, not executed',
    },
  },
  {
    hole: 'H41',
    schedule: 'A statement of the business change waits for a row lock, and its time limit is read as "in progress".',
    rule: 'P54',
    why: 'it takes the lock limits of a real PostgreSQL; the memory store of the simulator has no rows but those of keys',
    test: {
      file: 'test/server/postgres.test.ts',
      title: 'H41: a business statement that runs into a lock limit is "try again", never "in progress"',
    },
  },
  {
    hole: 'H46',
    schedule: 'The database fails over and loses a commit, the order and its key row alike.',
    rule: 'section 18, P61',
    why: 'nothing in a client or a server can see a commit that the database took back: a stated limit, against which the server can only insist on durable commits',
    test: {
      file: 'test/server/postgres.test.ts',
      title: 'P61: synchronous_commit is on although the database says off; a stronger setting stays',
    },
  },
]
