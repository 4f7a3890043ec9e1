import { serverConformance } from 'samekey/testing'
import { describe, expect, it } from 'vitest'
import { memoryBench, mockBench, mswBench } from './in-memory.ts'

const tools = { describe, it, expect }
const declared = [
  serverConformance('the handler in process, on rows in memory', memoryBench, tools),
  serverConformance('the mock', mockBench, tools),
  serverConformance('the mock behind MSW, through fetch', mswBench, tools),
]

describe('conformance', () => {
  it('every bench here runs every case', () => {
    expect(declared.map(({ skipped }) => skipped)).toEqual([[], [], []])
    expect(new Set(declared.map(({ cases }) => cases)).size).toBe(1)
  })
})
