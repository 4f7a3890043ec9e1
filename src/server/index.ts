/**
 * The server kit: web-standard Request to Response, on any store that keeps keys in the business database. Hono, Next.js,
 * Deno and Bun take its handlers as they are; for Node's `http`, Express and Fastify see `samekey/server/node`,
 * `samekey/server/express` and `samekey/server/fastify`.
 */
export {
  type AnswerData,
  answerFor,
  type FinalDecision,
  monitorDocument,
} from './answer-for.ts'
export { complete } from './complete.ts'
export { type CorsOptions, cors, type Handler } from './cors.ts'
export {
  type AgeReading,
  type Asked,
  type Busy,
  type ClaimIt,
  decideLookup,
  decideSubmit,
  decideVoid,
  type EntryRefusal,
  type Found,
  type Gone,
  type Inserted,
  type KeyReading,
  type KeyRow,
  type LookupDecision,
  type LookupView,
  type Retention,
  readAge,
  readKey,
  readKeySegment,
  readScopeTag,
  type ScopeReading,
  type StoredAnswer,
  type StoredBody,
  type SubmitDecision,
  type SubmitView,
  type TaskStatus,
  type TaskView,
  type Unread,
  type VoidDecision,
  type VoidView,
} from './decide.ts'
export { CommitUnknownError, StoreUnavailableError } from './errors.ts'
export { type IdempotentHandler, idempotent } from './idempotent.ts'
export {
  type MemoryServerStore,
  type MemoryServerStoreOptions,
  type MemoryTransaction,
  memoryServerStore,
} from './memory.ts'
export type {
  AuthorizeContext,
  ExecuteContext,
  IdempotentOptions,
  Limits,
  RereadContext,
  Scope,
  VoidContext,
} from './options.ts'
export { type Reaper, type ReaperOptions, startReaper } from './reaper.ts'
export type { Report, ServerEvent } from './report.ts'
export type { RequestBody } from './request-body.ts'
export {
  type Accepted,
  type Answer,
  type AnswerHeaders,
  accepted,
  byReference,
  bytes,
  type Declined,
  decline,
  type ExecuteResult,
  empty,
  json,
  omitBody,
  type Refusal,
  refuse,
} from './results.ts'
export { type IdempotencyRoutesOptions, idempotencyRoutes } from './routes.ts'
export type {
  BeginOptions,
  CallPlace,
  Claim,
  ClaimedTask,
  Ending,
  KeyId,
  LockedTask,
  NewKey,
  Reading,
  ServerStore,
  Taken,
  Unit,
  UnknownTask,
} from './store.ts'
export type { RetryPolicy } from './tasks/attempt.ts'
export {
  absent,
  type CallAbsent,
  type CallDone,
  type CallRefused,
  type CallResult,
  type CallUndelivered,
  done,
  refused,
  undelivered,
} from './tasks/call-ends.ts'
export type { CallFinding, CallOutcome, CallRow, ServiceKind } from './tasks/call-row.ts'
export type { CallContext } from './tasks/call-try.ts'
export {
  type Finish,
  finish,
  type LeaveUnknown,
  leaveUnknown,
  type Retry,
  retry,
  type TaskAnswer,
  type TaskEnd,
} from './tasks/ends.ts'
export { CallOpenError, CallUndeliveredError, CallUnknownError, WorkLostError } from './tasks/errors.ts'
export {
  type AskedCall,
  type ExternalCall,
  externalCall,
  type PlainCall,
} from './tasks/external-call.ts'
export type { WorkerOptions, WorkOptions } from './tasks/options.ts'
export { resume, settle } from './tasks/people.ts'
export { type CanBeAsked, canBeAsked, type Neither, neither, type TakesKeys, takesKeys } from './tasks/services.ts'
export type { Task, TaskHandler } from './tasks/task.ts'
export type { NewTask, TaskRow, TaskWord } from './tasks/task-row.ts'
export { tellTask } from './tasks/tell.ts'
export { workOnce } from './tasks/work-once.ts'
export { startWorker, type Worker } from './tasks/worker.ts'
