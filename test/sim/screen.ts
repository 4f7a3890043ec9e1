/** How far a campaign is, on stderr: stdout belongs to the report. */
import type { Sight } from './simulate.ts'

export interface Screen {
  readonly onSight: (sight: Sight) => void
  /** Clears what is shown. */
  close(): void
}

/** A terminal is written over; a log gets a line now and then. */
const onTerminalMs = 500
const inLogMs = 10_000

export function openScreen(schedules: number): Screen {
  const { stderr } = process
  const { isTTY } = stderr
  const beganAt = performance.now()
  let sight: Sight = { done: 0, violations: 0, toShrink: null }
  /** When the latest number of schedules came in: between two of them nothing gets slower. */
  let doneMs = 0

  function show(): void {
    const line = sightLine(sight, schedules, doneMs)
    stderr.write(isTTY ? `\r\x1b[K${line.slice(0, (stderr.columns || 80) - 1)}` : `${line}\n`)
  }

  if (isTTY) show()
  const timer = setInterval(show, isTTY ? onTerminalMs : inLogMs)
  return {
    onSight(next) {
      if (next.done !== sight.done) doneMs = performance.now() - beganAt
      sight = next
      if (isTTY) show()
    },
    close() {
      clearInterval(timer)
      if (isTTY) stderr.write('\r\x1b[K')
    },
  }
}

/**
 * One line, short enough for any terminal.
 *
 * @param doneMs how long all that is done took
 */
export function sightLine({ done, violations, toShrink }: Sight, schedules: number, doneMs: number): string {
  const found = violations === 0 ? 'no violation' : `${violations} violation${violations === 1 ? '' : 's'}`
  if (toShrink !== null) return `sim: ${found}; making schedules short, ${toShrink} to go`
  const progress = `sim: ${numberOf(done)} of ${numberOf(schedules)} schedules`
  if (done === 0) return `${progress}, starting`
  const perSecond = done / (doneMs / 1000)
  const left = clockOf(((schedules - done) / perSecond) * 1000)
  return `${progress}, ${numberOf(Math.round(perSecond))}/s, ${left} left, ${found}`
}

/** `12,345` */
export function numberOf(value: number): string {
  return value.toLocaleString('en-US')
}

/** Minutes and seconds. */
export function clockOf(ms: number): string {
  const seconds = Math.ceil(ms / 1000)
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`
}
