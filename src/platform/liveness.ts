import type { Ids, Liveness } from '../ports.ts'

/**
 * Tells early that a lease's holder is gone. In a browser a context holds a Web Lock under its name for as long as it
 * lives; a lock that nobody holds means that the tab died or was reloaded (P47). Where there are no Web Locks, and in
 * Node, nobody is ever known to be gone, and leases run out by time.
 */
export function systemLiveness(ids: Ids): Liveness {
  const locks = isBrowser() ? globalThis.navigator?.locks : undefined
  if (locks === undefined) return { holder: newHolder(ids), isGone: () => Promise.resolve(false), close() {} }
  const holder = newHolder(ids)
  let release: () => void = () => {}
  const closed = new Promise<void>((resolve) => {
    release = resolve
  })
  // Whether the lock was granted before anybody asks does not matter: a late grant only delays nothing.
  const held = locks.request(lockName(holder), () => closed)
  held.catch(() => {})
  return {
    holder,
    async isGone(other) {
      try {
        const { held: now = [], pending = [] } = await locks.query()
        return ![...now, ...pending].some(({ name }) => name === lockName(other))
      } catch {
        return false
      }
    },
    close: release,
  }
}

/** Node has `navigator.locks` too, but they reach no other process. */
function isBrowser(): boolean {
  return (
    typeof globalThis.document === 'object' ||
    typeof (globalThis as { importScripts?: unknown }).importScripts === 'function'
  )
}

function lockName(holder: string): string {
  return `samekey ${holder}`
}

function newHolder(ids: Ids): string {
  try {
    return ids.token().replaceAll('.', '-')
  } catch {
    // No secure source: submits will say so. The holder's name only has to differ from others.
    return `h${ids.random()}`.replaceAll('.', '-')
  }
}
