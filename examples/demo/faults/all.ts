import type { Fault } from '../fault.ts'
import { f2 } from './f2-crash-before-sending.ts'
import { f3 } from './f3-request-lost.ts'
import { f4 } from './f4-server-dies.ts'
import { f5 } from './f5-answer-lost.ts'
import { f6 } from './f6-client-dies.ts'
import { f7 } from './f7-same-key-at-once.ts'
import { f8 } from './f8-other-payload.ts'
import { f9 } from './f9-accepted.ts'
import { f13 } from './f13-window-over.ts'
import { f24 } from './f24-no-deduplication.ts'

/** In the order of the table. */
export const faults: readonly Fault[] = [f2, f3, f4, f5, f6, f7, f8, f9, f13, f24]
