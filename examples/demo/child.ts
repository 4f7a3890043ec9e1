/** Processes of the demo, and how they talk: one job at the start, reports afterwards. */
import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'

/** A process that was started. */
export interface Child {
  /** Resolves when it ended as it should: by itself, or through `kill`. Rejects with what it last said otherwise. */
  readonly ended: Promise<void>
  /** SIGKILL: it gets no chance to tidy up. */
  kill(): Promise<void>
}

const running = new Set<ChildProcess>()

/** Starts a program of this folder with a job. */
export function startChild<Job extends object, Report>(
  program: string,
  job: Job,
  onReport: (report: Report) => void,
): Child {
  const child = fork(fileURLToPath(new URL(program, import.meta.url)), {
    // The loader of this process, and no warning that node:sqlite is young.
    execArgv: [...process.execArgv, '--disable-warning=ExperimentalWarning'],
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  })
  running.add(child)
  let killed = false
  let said = ''
  child.stderr?.setEncoding('utf8').on('data', (chunk: string) => {
    said = (said + chunk).slice(-4000)
  })
  child.on('message', (report) => onReport(report as Report))
  child.send(job, () => {
    // A process that ended at once says so by its exit.
  })
  const ended = new Promise<void>((resolve, reject) => {
    child.once('error', reject)
    child.once('exit', (code, signal) => {
      running.delete(child)
      if (killed || code === 0) resolve()
      else reject(new Error(`${program} ended with ${signal ?? code}.\n${said}`))
    })
  })
  ended.catch(() => {})
  return {
    ended,
    kill() {
      killed = true
      child.kill('SIGKILL')
      return ended
    },
  }
}

/** Ends every process that was started, whatever it is doing. */
export async function killChildren(): Promise<void> {
  const all = [...running]
  await Promise.all(
    all.map((child) => {
      const gone = new Promise((resolve) => child.once('exit', resolve))
      return child.kill('SIGKILL') ? gone : undefined
    }),
  )
}

/** In the child: its job. A child whose parent is gone ends too; Ctrl-C, which reaches all of us, is the parent's to hear. */
export function jobOf<Job>(): Promise<Job> {
  process.on('SIGINT', () => {})
  process.once('disconnect', () => process.exit())
  return new Promise((resolve) => process.once('message', (job) => resolve(job as Job)))
}

/** In the child: a report to the parent. Resolves when it is on its way. */
export function tell(report: object): Promise<void> {
  return new Promise((resolve) => {
    // The parent may be gone already: then there is nobody to tell.
    if (process.send === undefined || !process.send(report, undefined, undefined, () => resolve())) resolve()
  })
}
