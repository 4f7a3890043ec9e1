import type { Signals } from '../ports.ts'

/** Hints of a browser: online, page visible or shown again. Elsewhere there are none, and the network is believed to be there. */
export const systemSignals: Signals = {
  online: () => globalThis.navigator?.onLine !== false,
  onWake(wake) {
    if (typeof globalThis.addEventListener !== 'function') return () => {}
    const online = (): void => wake('online')
    const visible = (): void => {
      if (globalThis.document?.visibilityState !== 'hidden') wake('visible')
    }
    globalThis.addEventListener('online', online)
    globalThis.addEventListener('focus', visible)
    globalThis.addEventListener('pageshow', visible)
    globalThis.document?.addEventListener('visibilitychange', visible)
    return () => {
      globalThis.removeEventListener('online', online)
      globalThis.removeEventListener('focus', visible)
      globalThis.removeEventListener('pageshow', visible)
      globalThis.document?.removeEventListener('visibilitychange', visible)
    }
  },
}
