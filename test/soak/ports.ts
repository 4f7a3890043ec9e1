/** Ports that stay ours while nobody listens at them, so that a server can come back to its own. */
import { once } from 'node:events'
import { createServer } from 'node:net'

/** Below what operating systems give to outgoing connections: one of those would else take the place of a dead server. */
const lowest = 20_000
const count = 10_000

/** @param start where to begin looking, from 0 to 1: runs at the same time should not. */
export async function freePorts(howMany: number, start: number): Promise<number[]> {
  const ports: number[] = []
  for (let offset = 0; ports.length < howMany && offset < count; offset += 1) {
    const port = lowest + ((Math.floor(start * count) + offset) % count)
    if (await isFree(port)) ports.push(port)
  }
  if (ports.length < howMany) throw new Error('There are no free ports.')
  return ports
}

async function isFree(port: number): Promise<boolean> {
  const probe = createServer()
  try {
    probe.listen({ port, host: '127.0.0.1' })
    await once(probe, 'listening')
    return true
  } catch {
    return false
  } finally {
    probe.close()
  }
}
