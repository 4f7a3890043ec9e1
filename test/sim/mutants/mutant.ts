/** A planted fault: a bug that somebody could really write, as an edit of a few lines of the product's source. */
import type { Edit } from '../bundle.ts'

export interface Mutant {
  /** What is wrong then, in a few words. */
  readonly name: string
  /** The promise that it breaks. */
  readonly rule: string
  readonly edits: readonly Edit[]
}

/** A fault of one edit. */
export function fault(name: string, rule: string, file: string, find: string, replace: string): Mutant {
  return { name, rule, edits: [{ file, find, replace }] }
}
