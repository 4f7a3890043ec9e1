/** What is going on, on stderr: stdout belongs to the result. */
const { stderr } = process

/** A line that stays; where stderr is a terminal, also one line that is rewritten. */
export interface Progress {
  say(line: string): void
  /** One client is through with one order; said twice, it counts once. */
  through(what: string): void
  begin(faultId: string): void
  end(faultId: string, line: string): void
  close(): void
}

/** @param expected how many orders will be through in the end, over both clients. */
export function startProgress(expected: number): Progress {
  const startedAt = performance.now()
  const underWay = new Set<string>()
  const through = new Set<string>()
  let shown = false

  function seconds(): string {
    return `${((performance.now() - startedAt) / 1000).toFixed(1).padStart(5)} s`
  }

  function clear(): void {
    if (shown) stderr.write('\r\x1b[K')
    shown = false
  }

  function draw(): void {
    if (!stderr.isTTY || underWay.size === 0) return
    clear()
    const percent = Math.floor((through.size / expected) * 100)
    stderr.write(
      `${seconds()}  ${percent} % of the orders; under way: ${[...underWay].join(' ')}`.slice(0, stderr.columns - 1),
    )
    shown = true
  }

  function say(line: string): void {
    clear()
    stderr.write(`${`${seconds()}  ${line}`.slice(0, stderr.columns)}\n`)
    draw()
  }

  const timer = setInterval(draw, 500)
  return {
    say,
    through(what) {
      through.add(what)
    },
    begin(faultId) {
      underWay.add(faultId)
      if (stderr.isTTY) draw()
      else say(`${faultId.padEnd(3)}  begins`)
    },
    end(faultId, line) {
      underWay.delete(faultId)
      say(line)
    },
    close() {
      clearInterval(timer)
      clear()
    },
  }
}
