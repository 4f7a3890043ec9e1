/** All cases, by what they are about. */
import { answers } from './cases/answers.ts'
import { callers } from './cases/callers.ts'
import { expiry } from './cases/expiry.ts'
import { inquiry } from './cases/inquiry.ts'
import { keys } from './cases/keys.ts'
import { payload } from './cases/payload.ts'
import { remembered } from './cases/remembered.ts'
import { wire } from './cases/wire.ts'
import { work } from './cases/work.ts'
import type { ConformanceCase } from './steps.ts'

/** The table. */
export const conformanceCases: Readonly<Record<string, readonly ConformanceCase[]>> = {
  'one effect, one answer': answers,
  'what counts as the same request': payload,
  'how a key is written': keys,
  'whose key it is': callers,
  'what is remembered': remembered,
  'older than the server remembers': expiry,
  'look-up and void': inquiry,
  'accepted work': work,
  'on the wire': wire,
}
