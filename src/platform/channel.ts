import type { Channel, ChannelMessage } from '../ports.ts'

/** BroadcastChannel where there is one; else silence, and contexts learn by looking (P46, B50). */
export function systemChannel(location: string): Channel {
  if (typeof globalThis.BroadcastChannel !== 'function') return { post() {}, onMessage: () => () => {}, close() {} }
  const channel = new BroadcastChannel(`samekey ${location}`)
  // In Node, a channel must not keep the process alive.
  const unref: unknown = (channel as { unref?: unknown }).unref
  if (typeof unref === 'function') unref.call(channel)
  let closed = false
  return {
    post(message) {
      if (!closed) channel.postMessage(message)
    },
    onMessage(listener) {
      const receive = ({ data }: MessageEvent<unknown>): void => {
        if (isMessage(data)) listener(data)
      }
      channel.addEventListener('message', receive as EventListener)
      return () => channel.removeEventListener('message', receive as EventListener)
    },
    close() {
      closed = true
      channel.close()
    },
  }
}

/** Other versions, or anything else on the page, may speak on the channel. */
function isMessage(data: unknown): data is ChannelMessage {
  if (typeof data !== 'object' || data === null) return false
  const { client, key, revision } = data as Record<string, unknown>
  return typeof client === 'string' && typeof key === 'string' && typeof revision === 'number'
}
