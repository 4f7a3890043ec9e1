import { v5 } from 'uuid'

/** Whose call it is: the identity of the accepted key (P53), and the call's name within its work. */
export interface OperationIdParts {
  readonly tenant: string
  readonly principal: string
  readonly operation: string
  readonly key: string
  readonly call: string
}

/** Namespace of operation ids. Never to be changed: a takeover by a newer release must send the same id (P65). */
const NAMESPACE = 'd7cf9926-1d79-45f1-a240-6345cbb98c11'

/**
 * The id under which a call is known to the service behind us: the same on every try, in every process, after every
 * takeover (P65). UUIDv5 over the JSON array of the parts, which keeps them apart. Not of the request (P16).
 */
export function operationIdOf({ tenant, principal, operation, key, call }: OperationIdParts): string {
  return v5(JSON.stringify([tenant, principal, operation, key, call]), NAMESPACE)
}
