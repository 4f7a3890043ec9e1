/**
 * Writes the generated blocks of README.md and docs/verification.md: what stands between `<!-- generated:NAME -->` and
 * `<!-- /generated:NAME -->`, and the module of the SQL migrations. With `--check`, writes nothing and exits with 1 when
 * something is stale, and says what. Another document can be named in place of README.md.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { root } from './entries.ts'
import { renderFaults } from './fault-docs.ts'
import { renderDiagram, renderStates, renderVerdicts } from './machine-docs.ts'
import { migrationsFile, renderMigrations } from './migrations.ts'
import { renderHoles, renderInvariants, renderMutants, renderSchedules, renderSoak } from './verification-docs.ts'

/** Every generated block by name, as it stands between its two markers. */
export function renderBlocks(): Readonly<Record<string, string>> {
  return { verdicts: renderVerdicts(), faults: renderFaults(), diagram: renderDiagram(), states: renderStates() }
}

/** The blocks of docs/verification.md. */
export function renderVerification(): Readonly<Record<string, string>> {
  return {
    invariants: renderInvariants(),
    schedules: renderSchedules(),
    mutants: renderMutants(),
    holes: renderHoles(),
    soak: renderSoak(),
  }
}

/** A document with its blocks put in. */
export interface Generated {
  readonly text: string
  /** Names of the blocks that stood there differently. */
  readonly stale: readonly string[]
  /** What keeps blocks from being put in, each with the remedy. */
  readonly problems: readonly string[]
}

/** Puts every block between its markers; everything else stays as it is. */
export function generate(text: string, blocks: Readonly<Record<string, string>>): Generated {
  let result = text
  const stale: string[] = []
  const problems: string[] = []
  for (const [name, block] of Object.entries(blocks)) {
    const [opening, closing] = [`<!-- generated:${name} -->`, `<!-- /generated:${name} -->`]
    const [begins, ends] = [result.split(opening).length - 1, result.split(closing).length - 1]
    const from = result.indexOf(opening) + opening.length
    const to = result.indexOf(closing)
    if (begins !== 1 || ends !== 1 || to < from) {
      const found =
        begins === 0 && ends === 0 ? 'no place' : begins > 1 || ends > 1 ? 'more than one place' : 'half a place'
      problems.push(
        `there is ${found} for "${name}": put these two lines where it belongs, once:\n${opening}\n${closing}`,
      )
      continue
    }
    const wanted = `\n${block}\n`
    if (result.slice(from, to) !== wanted) stale.push(name)
    result = result.slice(0, from) + wanted + result.slice(to)
  }
  for (const name of text.matchAll(/<!-- generated:(\S+) -->/g)) {
    if (!Object.hasOwn(blocks, name[1] as string)) problems.push(`there is a place for "${name[1]}", and no such block`)
  }
  return { text: result, stale, problems }
}

/**
 * @param blocks what belongs into it. Default: those of README.md.
 * @returns what to print, and the exit code.
 */
export function run(
  args: readonly string[],
  blocks: () => Readonly<Record<string, string>> = renderBlocks,
): { readonly output: string; readonly code: number } {
  const check = args.includes('--check')
  const file = args.find((arg) => !arg.startsWith('--')) ?? join(root, 'README.md')
  const name = relative(root, file)
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch {
    return { output: `generate: ${name} cannot be read; write it first, with a place for each block`, code: 1 }
  }
  const { text: fresh, stale, problems } = generate(text, blocks())
  if (problems.length > 0) return { output: problems.map((problem) => `${name}: ${problem}`).join('\n'), code: 1 }
  if (stale.length === 0) return { output: `generate: ${name} is up to date`, code: 0 }
  if (check) return { output: `generate: stale in ${name}: ${stale.join(', ')}. Run: npm run generate`, code: 1 }
  writeFileSync(file, fresh)
  return { output: `generate: wrote ${stale.join(', ')} in ${name}`, code: 0 }
}

/** The same for the migrations. */
export function runMigrations(check: boolean): { readonly output: string; readonly code: number } {
  const file = join(root, migrationsFile)
  const fresh = renderMigrations()
  if (readFileSync(file, 'utf8') === fresh) return { output: `generate: ${migrationsFile} is up to date`, code: 0 }
  if (check) return { output: `generate: ${migrationsFile} is stale. Run: npm run generate`, code: 1 }
  writeFileSync(file, fresh)
  return { output: `generate: wrote ${migrationsFile}`, code: 0 }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const args = process.argv.slice(2)
  const check = args.includes('--check')
  const verification = [join(root, 'docs/verification.md'), ...(check ? ['--check'] : [])]
  for (const { output, code } of [run(args), run(verification, renderVerification), runMigrations(check)]) {
    console.log(output)
    if (code !== 0) process.exitCode = code
  }
}
