/** What is going on, on stderr: stdout belongs to the result. */
import { sightLine, sightText } from './report.ts'
import type { Sight } from './soak.ts'

export interface Screen {
  /** Shows it from now on. */
  watch(look: () => Sight): void
  close(): void
}

/** A terminal is written over; a log gets a line now and then. */
const onTerminalMs = 500
const inLogMs = 10_000

export function openScreen(seed: number): Screen {
  const { stderr } = process
  let timer: NodeJS.Timeout | undefined
  let shown = 0

  function clear(): void {
    if (shown > 0) stderr.write(`\x1b[${shown}A\r\x1b[J`)
    shown = 0
  }

  function draw(look: () => Sight): void {
    const text = sightText(look(), seed, stderr.columns || 80)
    clear()
    stderr.write(`${text}\n`)
    shown = text.split('\n').length
  }

  return {
    watch(look) {
      const show = stderr.isTTY ? () => draw(look) : () => void stderr.write(`${sightLine(look())}\n`)
      show()
      timer = setInterval(show, stderr.isTTY ? onTerminalMs : inLogMs)
    },
    close() {
      clearInterval(timer)
      clear()
    },
  }
}
