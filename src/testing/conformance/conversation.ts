/** What a case has asked and heard so far. */
import type { ConformanceTools, ServerBench } from './bench.ts'
import { compare, problemOf, type Seen } from './check.ts'
import { outgoing } from './send.ts'
import type { Ask, Expected } from './steps.ts'

/** One case's conversation with its bench. */
export interface Conversation {
  readonly bench: ServerBench
  readonly expect: ConformanceTools['expect']
  /** Answers that later steps speak of. */
  readonly named: Map<string, Seen>
  /** Epoch ms by the shop's clock. */
  now(): number
  send(ask: Ask): Promise<Seen>
  /** @param step for messages. */
  check(step: string, seen: Seen, expected: Expected): void
}

/** Nothing was asked yet. */
export function conversation(bench: ServerBench, expect: ConformanceTools['expect']): Conversation {
  const named = new Map<string, Seen>()
  const types = new Map<unknown, unknown>()
  const now = (): number => bench.now?.() ?? Date.now()

  /** Section 16: every code has a type of its own, the same each time, for consumers that know only one of the two. */
  function noteProblem(seen: Seen): void {
    const problem = problemOf(seen)
    if (problem === null) return
    for (const [code, type] of types) {
      expect({ code, type, same: problem.type === type }).toEqual({ code, type, same: problem.code === code })
    }
    types.set(problem.code, problem.type)
  }

  return {
    bench,
    expect,
    named,
    now,

    async send(ask) {
      const { path, init, sent } = outgoing(ask, now())
      const response = await bench.fetch(path, init)
      const bytes = new Uint8Array(await response.arrayBuffer())
      return { status: response.status, headers: response.headers, bytes, sent }
    },

    check(step, seen, expected) {
      const { got, wanted } = compare(seen, expected, named, now())
      expect({ step, ...got }).toEqual({ step, ...wanted })
      noteProblem(seen)
    },
  }
}
