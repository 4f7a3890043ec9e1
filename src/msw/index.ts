/**
 * `samekey/msw`: a server for tests. It is the real server kit over rows in memory, with faults at stated points and
 * counters of what was really done.
 */

export {
  type AcceptedOptions,
  type AcceptedScript,
  accepted,
  always,
  captivePortal,
  commitThenDrop,
  commitUnknown,
  cutBody,
  damaged,
  delay,
  dropBeforeCommit,
  expired,
  type Fault,
  type FaultKind,
  hang,
  hideHeaders,
  inProgress,
  malformedMonitor,
  noFault,
  type RequestKind,
  redirect,
  refuseConnection,
  type ScriptedAnswer,
  type Stages,
  status,
  storedFailure,
  together,
  unavailable,
  voided,
  workerDies,
  workerSleeps,
} from './faults.ts'
export { handlers } from './handlers.ts'
export { createMockServer, type Effects, type MockServer, type MockServerOptions } from './mock-server.ts'
export type { MockCall, MockOperation, MockOrder, MockWork } from './operations.ts'
export type { PathParams } from './path-pattern.ts'
export type { LoggedAnswer, LoggedRequest } from './request-log.ts'
export { anonymous, bearerScope } from './scopes.ts'
export type { FaultScripts, Faults } from './scripts.ts'
export type { MockWorkerOptions } from './worker.ts'
export type { Effect } from './world.ts'
