/**
 * Ends a process group and removes its folder when whoever started this program is gone, by whatever way: its end of
 * our stdin closes even after SIGKILL, when no exit handler of its own can run.
 *
 *     node watchdog.mjs <process group> <signal> <folder>
 */
import { rmSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'

const [group, signal, folder] = process.argv.slice(2)
const patienceMs = 5000

function send(name) {
  try {
    process.kill(-Number(group), name)
    return true
  } catch {
    return false // nobody left in the group
  }
}

process.stdin.resume().on('end', async () => {
  send(signal)
  for (let waitedMs = 0; send(0) && waitedMs < patienceMs; waitedMs += 50) await sleep(50)
  send('SIGKILL')
  rmSync(folder, { recursive: true, force: true, maxRetries: 3 })
})
