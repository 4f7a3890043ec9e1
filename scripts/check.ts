/**
 * Runs every `check:*` script of package.json, one after another, in the order they stand there. Goes on after a
 * failure, so that one run shows everything that is wrong. `npm run check -- types lint` runs only those.
 */
import { spawn } from 'node:child_process'
import { manifest, root } from './entries.ts'

const prefix = 'check:'
const steps = Object.keys(manifest.scripts)
  .filter((name) => name.startsWith(prefix))
  .map((name) => name.slice(prefix.length))
const wanted = process.argv.slice(2)
const unknown = wanted.filter((name) => !steps.includes(name))
if (unknown.length > 0) {
  console.error(`check: no such step: ${unknown.join(', ')}. There are: ${steps.join(', ')}`)
  process.exit(2)
}

const selected = wanted.length > 0 ? wanted : steps
const failed: string[] = []
for (const step of selected) {
  process.stdout.write(`check: ${step.padEnd(12)}`)
  const startedAt = performance.now()
  const { code, output } = await runScript(`${prefix}${step}`)
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1)
  process.stdout.write(`${code === 0 ? 'ok' : 'FAILED'}  ${seconds} s\n`)
  if (code !== 0) {
    failed.push(step)
    console.log(output.trimEnd().replace(/^/gm, '  '))
  }
}
console.log(failed.length === 0 ? `check: all ${selected.length} steps ok` : `check: failed: ${failed.join(', ')}`)
process.exitCode = failed.length === 0 ? 0 : 1

/** Output is kept back and shown only after a failure: a wall of green text hides the one red line. */
function runScript(name: string): Promise<{ code: number | null; output: string }> {
  return new Promise((resolve, reject) => {
    const child = spawn('npm', ['run', '--silent', name], { cwd: root, stdio: ['ignore', 'pipe', 'pipe'] })
    let output = ''
    const collect = (chunk: string) => {
      output += chunk
    }
    child.stdout.setEncoding('utf8').on('data', collect)
    child.stderr.setEncoding('utf8').on('data', collect)
    child.on('error', reject).on('close', (code) => resolve({ code, output }))
  })
}
