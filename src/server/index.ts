/**
 * The server kit: web-standard Request to Response, on any store that keeps keys in the business database.
 *
 * On Node, `@hono/node-server` mounts a handler in two lines:
 *
 * ```ts
 * import { createServer } from 'node:http'
 * import { getRequestListener } from '@hono/node-server'
 *
 * const handle = async (request: Request) => new Response(`You asked for ${request.url}`)
 * createServer(getRequestListener(handle)).listen(3000)
 * ```
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
export type { AuthorizeContext, ExecuteContext, IdempotentOptions, Limits, Scope } from './options.ts'
export type { Report, ServerEvent } from './report.ts'
export type { RequestBody } from './request-body.ts'
export {
  type Accepted,
  type Answer,
  type AnswerHeaders,
  accepted,
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
  Claim,
  Ending,
  KeyId,
  NewKey,
  NewTask,
  Reading,
  ServerStore,
  Taken,
  TaskProgress,
  TaskStore,
  Unit,
} from './store.ts'
