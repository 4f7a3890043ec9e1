import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'

export interface Guarded {
  /** A process that leads its own group (`detached: true`), so that its children end with it. */
  pid: number
  signal: NodeJS.Signals
  /** Removed once the group is gone. */
  folder: string
}

/**
 * No test leaves a process behind: ends `pid` as soon as this process ends, however it ends. Call the returned
 * function after an orderly stop.
 */
export function guardAgainstStray({ pid, signal, folder }: Guarded): () => void {
  const program = fileURLToPath(new URL('watchdog.mjs', import.meta.url))
  const watchdog = spawn(process.execPath, [program, String(pid), signal, folder], {
    // In a group of its own, or Ctrl-C would end it together with us.
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  watchdog.unref()
  return () => void watchdog.kill('SIGKILL')
}
