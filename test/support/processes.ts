/** Programs of the tests as processes of their own: what a kill, a stop or a takeover does can be seen nowhere else. */
import { type ChildProcess, fork } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { buildSync } from 'esbuild'
import type { Message } from './questions.ts'
import { guardAgainstStray } from './stray.ts'

/** How a process ended, with all that it said. */
export interface Ended {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly said: string
}

/** A process that has done its job's preparations and listens to questions. */
export interface Running<Ready> {
  readonly ready: Ready
  /** Resolves however it ends. */
  readonly ended: Promise<Ended>
  readonly isOver: () => boolean
  /** All that it has said so far. */
  readonly said: () => string
  /** Asks it something over IPC. Rejects when it ends without an answer. */
  ask<Answer>(question: object): Promise<Answer>
  /** Stops it in the middle of whatever it does. Nothing but SIGKILL ends it then. */
  stop(): void
  /** Lets it go on; one that waits for a byte on its standard input gets that. */
  goOn(): void
  kill(): Promise<Ended>
}

/** A program in one file. Hundreds of processes start within a minute here, and half of a start is finding modules. */
export interface Program<Job extends object, Ready> {
  /** Resolves when it said that it is ready. */
  start(job: Job, options?: StartOptions): Promise<Running<Ready>>
  /** Ends every process of it, and removes its file. */
  end(): Promise<void>
}

export interface StartOptions {
  /** For a process that will be stopped: it cannot see by itself that we are gone, so somebody else has to. */
  readonly willBeStopped?: boolean
}

/** @param source of the program; it calls `serveQuestions`. */
export function programOf<Job extends object, Ready>(source: URL): Program<Job, Ready> {
  const folder = mkdtempSync(join(tmpdir(), 'samekey-program-'))
  const file = join(folder, `${basename(fileURLToPath(source), '.ts')}.mjs`)
  buildSync({
    entryPoints: [fileURLToPath(source)],
    outfile: file,
    bundle: true,
    platform: 'node',
    format: 'esm',
    external: ['pg-native'],
    // Packages that are CommonJS look for `require`.
    banner: { js: `import { createRequire } from 'node:module'; const require = createRequire(import.meta.url)` },
    logLevel: 'warning',
  })
  const children = new Set<ChildProcess>()

  return {
    async start(job, { willBeStopped = false } = {}) {
      const child = fork(file, {
        execArgv: [],
        env: { ...process.env, NODE_COMPILE_CACHE: folder, PROGRAM_FOLDER: folder },
        detached: willBeStopped,
        stdio: ['pipe', 'pipe', 'pipe', 'ipc'],
      })
      children.add(child)
      const running = await listenTo<Ready>(child, job)
      void running.ended.then(() => children.delete(child))
      if (willBeStopped && child.pid !== undefined) {
        void running.ended.then(guardAgainstStray({ pid: child.pid, signal: 'SIGKILL', folder }))
      }
      return running
    },
    async end() {
      await Promise.all(
        [...children].map((child) => {
          const gone = new Promise((resolve) => child.once('exit', resolve))
          return child.kill('SIGKILL') ? gone : undefined
        }),
      )
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

async function listenTo<Ready>(child: ChildProcess, job: object): Promise<Running<Ready>> {
  let said = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (chunk: string) => {
      said += chunk
    })
  }
  // It may be gone when it is written to.
  child.stdin?.on('error', () => {})
  let over = false
  const ended = new Promise<Ended>((resolve, reject) => {
    child.once('error', reject)
    // Not 'exit': what it said last may still be on its way.
    child.once('close', (code, signal) => {
      over = true
      resolve({ code, signal, said })
    })
  })
  const waiting = new Map<number, (value: unknown) => void>()
  child.on('message', (message) => {
    const { number, value } = message as Message
    waiting.get(number)?.(value)
    waiting.delete(number)
  })

  let asked = 0
  function send<Answer>(value: object): Promise<Answer> {
    const number = asked
    asked += 1
    const answered = new Promise<Answer>((resolve) => waiting.set(number, (answer) => resolve(answer as Answer)))
    child.send({ number, value }, () => {
      // A process that is gone says so by its end.
    })
    const answer = Promise.race([
      answered,
      ended.then(({ code, signal, said: last }) => neverAnswered(signal ?? code, last)),
    ])
    // Whoever still waits for it hears of it.
    answer.catch(() => {})
    return answer
  }

  const ready = await send<Ready>(job)
  return {
    ready,
    ended,
    isOver: () => over,
    said: () => said,
    ask: (question) => send(question),
    stop: () => void child.kill('SIGSTOP'),
    goOn() {
      child.kill('SIGCONT')
      child.stdin?.write('.')
    },
    kill() {
      child.kill('SIGKILL')
      return ended
    },
  }
}

function neverAnswered(how: string | number | null, said: string): never {
  throw new Error(`The process ended with ${how} and gave no answer.\n${said}`)
}
