/** Requests at the same time: who comes first is open, what may come of it is not. */
import { PROBLEMS } from '../../protocol/problem.ts'
import { IDEMPOTENT_REPLAYED } from '../../protocol/wire.ts'
import { type Comparison, compare } from './check.ts'
import type { Conversation } from './conversation.ts'
import type { Ask, Expected, JointEnd } from './steps.ts'
import { inProgress, replayOf } from './words.ts'

/** Many senders of one request: one of them executes, the others get its answer, now or when they ask again. */
export async function crowd(talk: Conversation, step: string, count: number, ask: Ask, gets: Expected): Promise<void> {
  const answers = await Promise.all(Array.from({ length: count }, () => talk.send(ask)))
  const winner = answers.find(({ status, headers }) => status === gets.status && !headers.has(IDEMPOTENT_REPLAYED))
  if (winner === undefined) throw new Error(`${step}: nobody's request was executed`)
  talk.named.set(step, winner)
  talk.check(step, winner, gets)
  for (const answer of answers) {
    if (answer === winner) continue
    // Told to ask again, or given the winner's answer; nothing else, and no 5xx above all (F7, B113, B114).
    const told = answer.status === PROBLEMS.idempotency_in_progress.status ? inProgress : replayOf(step)
    talk.check(`${step}, a rival`, answer, told)
    talk.check(`${step}, a rival again`, await talk.send(ask), replayOf(step))
  }
}

/** Different requests: all of their answers, with the effects, must be one of the ends. */
export async function atOnce(
  talk: Conversation,
  step: string,
  asks: readonly Ask[],
  ends: readonly JointEnd[],
): Promise<void> {
  const { bench, expect, named, now } = talk
  const answers = await Promise.all(asks.map(talk.send))
  const count = await bench.effects()
  const pictures = ends.map(({ gets, effects }) => {
    const compared = gets.map((expected, index): Comparison => {
      const answer = answers[index]
      if (answer === undefined) throw new Error(`${step}: an end speaks of more requests than were sent`)
      return compare(answer, expected, named, now())
    })
    return {
      got: { count, answers: compared.map(({ got }) => got) },
      wanted: { count: effects, answers: compared.map(({ wanted }) => wanted) },
    }
  })
  // Pictures are plain data: equal texts mean equal pictures.
  const fits = pictures.find(({ got, wanted }) => JSON.stringify(got) === JSON.stringify(wanted))
  const shown = fits ?? pictures[0]
  expect({ step, ...shown?.got }).toEqual({ step, ...shown?.wanted })
}
