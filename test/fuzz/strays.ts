/** Rejections that nobody handled, as long as a test file runs: a property looks after each of its runs. */
import { afterAll, beforeAll, expect } from 'vitest'

const strays: unknown[] = []
const note = (error: unknown): void => void strays.push(error)

beforeAll(() => void process.on('unhandledRejection', note))
afterAll(() => void process.off('unhandledRejection', note))

/** Fails when a rejection was left unhandled since the last look (H63). */
export async function expectNoStrays(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve))
  expect(strays.splice(0)).toEqual([])
}
