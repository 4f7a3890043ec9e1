import type { Fault } from '../fault.ts'
import { f2 } from './f2-crash-before-sending.ts'
import { f3 } from './f3-request-lost.ts'
import { f4 } from './f4-server-dies.ts'
import { f5 } from './f5-answer-lost.ts'
import { f6 } from './f6-client-dies.ts'
import { f7 } from './f7-same-key-at-once.ts'
import { f8 } from './f8-other-payload.ts'
import { f9 } from './f9-worker-dies.ts'
import { f10 } from './f10-old-worker.ts'
import { f11 } from './f11-provider-silent.ts'
import { f12 } from './f12-relay-dies.ts'
import { f13 } from './f13-window-over.ts'
import { f14 } from './f14-credentials-expire.ts'
import { f18 } from './f18-stored-failure.ts'
import { f19 } from './f19-cancelled.ts'
import { f20 } from './f20-commit-lost.ts'
import { f21 } from './f21-no-answer-in-row.ts'
import { f24 } from './f24-no-deduplication.ts'
import { p57 } from './p57-forgotten.ts'

/** In the order of the table. */
export const faults: readonly Fault[] = [
  f2,
  f3,
  f4,
  f5,
  f6,
  f7,
  f8,
  f9,
  f10,
  f11,
  f12,
  f13,
  f14,
  f18,
  f19,
  f20,
  f21,
  f24,
  p57,
]
