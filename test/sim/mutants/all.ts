import { holes } from '../holes/all.ts'
import type { Mutant } from './mutant.ts'
import { ofAnswers } from './of-answers.ts'
import { ofPeople } from './of-people.ts'
import { ofSending } from './of-sending.ts'
import { ofServer } from './of-server.ts'
import { ofTime } from './of-time.ts'

/** Each hole with its rule switched off. */
const ofHoles: readonly Mutant[] = holes.map(({ hole, rule, without: { name, edits } }) => ({
  name: `${hole}: ${name}`,
  rule,
  edits,
}))

/** Every planted fault. */
export const mutants: readonly Mutant[] = [...ofSending, ...ofTime, ...ofAnswers, ...ofPeople, ...ofServer, ...ofHoles]
