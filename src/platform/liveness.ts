import type { Ids, Liveness } from '../ports.ts'

/**
 * Tells early that a lease's holder is gone, so that a reload or a restart need not wait out its lease (P47, P49). In a
 * browser a context holds a Web Lock under its name for as long as it lives; in Node its name says which process it is.
 * Where neither helps, nobody is ever known to be gone, and leases run out by time.
 */
export function systemLiveness(ids: Ids): Liveness {
  if (isBrowser()) return globalThis.navigator?.locks === undefined ? byTime(ids) : byWebLock(ids)
  return globalThis.process?.versions?.node === undefined ? byTime(ids) : byProcess(ids)
}

function byTime(ids: Ids): Liveness {
  return { holder: freshName(ids), isGone: () => Promise.resolve(false), close() {} }
}

function byWebLock(ids: Ids): Liveness {
  const { locks } = globalThis.navigator
  const holder = freshName(ids)
  let release: () => void = () => {}
  const closed = new Promise<void>((resolve) => {
    release = resolve
  })
  // Whether the lock was granted before anybody asks does not matter: a pending one counts as held.
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

/**
 * `<host>~<pid>~<random>`: only processes of the same host are judged, and only a pid that nobody has counts as gone. A
 * pid that somebody else has by now costs the rest of the lease; two containers with one host name cost traffic.
 */
function byProcess(ids: Ids): Liveness {
  const { process } = globalThis
  const host = process.getBuiltinModule?.('node:os').hostname().replaceAll(/[.~]/g, '-') ?? ''
  return {
    holder: `${host}~${process.pid}~${freshName(ids)}`,
    isGone(other) {
      const [otherHost, pid] = other.split('~')
      return Promise.resolve(otherHost === host && host !== '' && isFree(Number(pid)))
    },
    close() {},
  }
}

/** True when no process has this id. */
function isFree(pid: number): boolean {
  if (!Number.isSafeInteger(pid) || pid <= 0) return false
  try {
    globalThis.process.kill(pid, 0)
    return false
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'ESRCH'
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

function freshName(ids: Ids): string {
  try {
    return ids.token().replaceAll(/[.~]/g, '-')
  } catch {
    // No secure source: submits will say so. A holder's name only has to differ from others.
    return `h${ids.random()}`.replaceAll('.', '-')
  }
}
