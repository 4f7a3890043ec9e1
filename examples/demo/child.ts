/** Processes of the demo: how they are started, and how they end. */
import { type ChildProcess, fork } from 'node:child_process'
import { basename } from 'node:path'
import { pathToFileURL } from 'node:url'
import { guardAgainstStray } from '../../test/support/stray.ts'

/** A process that was started. */
export interface Child {
  /** Resolves when it ended as it should: by itself, or through `kill`. Rejects with what it last said otherwise. */
  readonly ended: Promise<void>
  /** Sends a signal. Nothing but SIGKILL ends a process that was stopped. */
  signal(name: NodeJS.Signals): void
  /** SIGKILL: it gets no chance to tidy up. */
  kill(): Promise<void>
}

/** What a process is started with. */
export interface Launch {
  readonly file: string
  readonly env?: NodeJS.ProcessEnv
  /** Loaded before the program. */
  readonly preload?: string
  /** It will be stopped, and cannot see by itself then that we are gone: somebody else has to. */
  readonly willBeStopped?: boolean
  readonly onMessage?: (message: unknown) => void
  readonly onLine?: (line: string) => void
}

const running = new Set<ChildProcess>()

/** Starts a program, without the warning that node:sqlite is young. */
export function launch(options: Launch): { child: Child; send(message: object): void } {
  const { file, env = {}, preload, willBeStopped = false, onMessage, onLine } = options
  const forked = fork(file, {
    execArgv: [
      '--disable-warning=ExperimentalWarning',
      ...(preload === undefined ? [] : ['--import', pathToFileURL(preload).href]),
    ],
    env: { ...process.env, ...env },
    detached: willBeStopped,
    stdio: ['ignore', onLine === undefined ? 'ignore' : 'pipe', 'pipe', 'ipc'],
  })
  running.add(forked)
  let killed = false
  let said = ''
  const hear = (line: string): void => {
    said = `${said}${line}\n`.slice(-4000)
    onLine?.(line)
  }
  for (const stream of [forked.stdout, forked.stderr]) stream?.setEncoding('utf8').on('data', byLine(hear))
  if (onMessage !== undefined) forked.on('message', onMessage)
  const ended = new Promise<void>((resolve, reject) => {
    forked.once('error', reject)
    // Not 'exit': what it said last may still be on its way.
    forked.once('close', (code, signal) => {
      running.delete(forked)
      if (killed || code === 0) resolve()
      else reject(new Error(`${basename(file)} ended with ${signal ?? code}.\n${said}`))
    })
  })
  ended.catch(() => {})
  if (willBeStopped && forked.pid !== undefined) {
    const over = guardAgainstStray({ pid: forked.pid, signal: 'SIGKILL', folder: `${file}.is-no-folder` })
    ended.then(over, over)
  }
  return {
    child: {
      ended,
      signal: (name) => void forked.kill(name),
      kill() {
        killed = true
        forked.kill('SIGKILL')
        return ended
      },
    },
    send(message) {
      forked.send(message, () => {
        // A process that ended at once says so by its exit.
      })
    },
  }
}

/** Starts a client with a job; `say` sends it another message. */
export function startChild<Job extends object, Report>(
  file: string,
  job: Job,
  onReport: (report: Report) => void,
): Child & { say(message: object): void } {
  const { child, send } = launch({ file, onMessage: (report) => onReport(report as Report) })
  send(job)
  return { ...child, say: send }
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

function byLine(hear: (line: string) => void): (chunk: string) => void {
  let rest = ''
  return (chunk) => {
    const lines = (rest + chunk).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) hear(line)
  }
}

/**
 * In a client process: its job, and what it is told later. A process whose parent is gone ends too; Ctrl-C, which
 * reaches all of us, is the parent's to hear.
 */
export function jobOf<Job, Message = never>(onMessage: (message: Message) => void = () => {}): Promise<Job> {
  process.on('SIGINT', () => {})
  process.once('disconnect', () => process.exit())
  return new Promise((resolve) => {
    process.once('message', (job) => {
      process.on('message', (message) => onMessage(message as Message))
      resolve(job as Job)
    })
  })
}

/** In a client process: a report to the parent. Resolves when it is on its way. */
export function tell(report: object): Promise<void> {
  return new Promise((resolve) => {
    // The parent may be gone already: then there is nobody to tell.
    if (process.send === undefined || !process.send(report, undefined, undefined, () => resolve())) resolve()
  })
}
