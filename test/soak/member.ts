/** A process that is killed again and again, and comes back with the same files and ports. */
import { type Child, type Launch, launch } from '../../examples/demo/child.ts'

export const memberKinds = ['client', 'server', 'worker'] as const
export type MemberKind = (typeof memberKinds)[number]

/** A line of a console. */
export interface LogLine {
  readonly at: number
  readonly text: string
}

export interface Member {
  readonly name: string
  readonly kind: MemberKind
  /** It said that it is ready, and was not killed since. */
  readonly isReady: boolean
  /** It was started, and was not killed since. */
  readonly isAlive: boolean
  /** What it said on its console lately, in all its lives. */
  readonly log: readonly LogLine[]
  /** Resolves when it is ready; also when it was killed before. */
  start(): Promise<void>
  /** SIGKILL. Resolves when it is gone. */
  kill(): Promise<void>
  /** Says a last word, and resolves when it has ended. */
  finish(word: object): Promise<void>
  /** Is lost where it is not alive. */
  say(word: object): void
}

export interface MemberOptions extends Pick<Launch, 'file' | 'env' | 'preload'> {
  readonly name: string
  readonly kind: MemberKind
  /** Its first word in each life. */
  readonly job?: object
  readonly onReport?: (report: unknown) => void
  /** It is ready, or gone. */
  readonly onChange: (isReady: boolean) => void
  /** It ended although nobody killed it. */
  readonly onCrash: (error: unknown) => void
}

const longestLog = 5000

export function memberOf({ name, kind, job, onReport, onChange, onCrash, ...options }: MemberOptions): Member {
  const log: LogLine[] = []
  let life: { readonly child: Child; readonly send: (word: object) => void } | null = null
  let isReady = false
  let isFinishing = false
  let started = performance.now()

  function note(text: string): void {
    log.push({ at: Date.now(), text })
    if (log.length > longestLog) log.shift()
  }

  function start(): Promise<void> {
    started = performance.now()
    return new Promise((resolve) => {
      const { child, send } = launch({
        ...options,
        onLine(line) {
          if (line.startsWith('{"')) return onReport?.(JSON.parse(line))
          note(line)
          if (!/: ready\b/.test(line) || life?.child !== child) return
          note(`was ready after ${Math.round(performance.now() - started)} ms`)
          isReady = true
          onChange(true)
          resolve()
        },
      })
      life = { child, send }
      if (job !== undefined) send(job)
      const over = (error: unknown): void => {
        if (life?.child === child) {
          gone()
          if (error !== null || !isFinishing) onCrash(error ?? 'It ended by itself.')
        }
        resolve()
      }
      child.ended.then(() => over(null), over)
    })
  }

  function gone(): void {
    life = null
    if (!isReady) return
    isReady = false
    onChange(false)
  }

  return {
    name,
    kind,
    get isReady() {
      return isReady
    },
    get isAlive() {
      return life !== null
    },
    log,
    start,
    async kill() {
      const ending = life
      if (ending === null) return
      note('is killed')
      gone()
      await ending.child.kill()
    },
    async finish(word) {
      const ending = life
      isFinishing = true
      ending?.send(word)
      // One that fails is a crash, and told as that.
      await ending?.child.ended.catch(() => {})
    },
    say(word) {
      life?.send(word)
    },
  }
}
