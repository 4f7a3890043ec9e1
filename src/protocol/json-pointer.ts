/** JSON pointers (RFC 6901): how errors and fingerprint rules name a place in a JSON document. */

/** A pointer that names a member or an element: where its container is, and its own step in it. */
export interface JsonPointer {
  readonly parents: readonly string[]
  readonly last: string
}

/** One step of a pointer, from a member name or an index: `a/b` becomes `a~1b`. */
export function pointerStep(name: string | number): string {
  return String(name).replaceAll('~', '~0').replaceAll('/', '~1')
}

/**
 * Reads a pointer such as `/meta/clientTime`.
 *
 * @returns null where the text is no pointer, and for the empty pointer: the whole document is in no container.
 */
export function parsePointer(text: string): JsonPointer | null {
  if (!text.startsWith('/') || /~(?![01])/.test(text)) return null
  const cut = text.lastIndexOf('/')
  return { parents: text.slice(0, cut).split('/').slice(1).map(nameOf), last: nameOf(text.slice(cut + 1)) }
}

function nameOf(step: string): string {
  return step.replaceAll('~1', '/').replaceAll('~0', '~')
}
