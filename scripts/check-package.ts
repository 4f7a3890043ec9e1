/** Checks the packed tarball: what is in it (file list, publint), and whether its types resolve (are-the-types-wrong). */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { publint } from 'publint'
import { formatMessage } from 'publint/utils'
import { manifest } from './entries.ts'
import { buildAndPack } from './pack.ts'

const always = ['package.json', 'README.md', 'LICENSE', 'CHANGELOG.md']
const built = /^dist\/[\w/.-]+\.(js|js\.map|d\.ts)$/
/** Migrations as files, for tools that run such. */
const migrations = /^src\/server\/postgres\/sql\/\d{3}-[a-z-]+\.sql$/

/** What `exports` promises and the tarball lacks, and what the tarball has and nobody asked for. */
function fileProblems(files: string[]): string[] {
  const promised = Object.values(manifest.exports)
    .flatMap((target) => (typeof target === 'string' ? [target] : Object.values(target)))
    .map((path) => path.replace(/^\.\//, ''))
  const missing = [...always, ...promised].filter((path) => !files.includes(path))
  const unwanted = files.filter((path) => !always.includes(path) && !built.test(path) && !migrations.test(path))
  return [...missing.map((path) => `missing: ${path}`), ...unwanted.map((path) => `unwanted: ${path}`)]
}

async function publishProblems(tarball: string): Promise<string[]> {
  const bytes = new Uint8Array(readFileSync(tarball)).buffer
  const { messages, pkg } = await publint({ strict: true, pack: { tarball: bytes } })
  return messages.map((message) => `publint: ${formatMessage(message, pkg, { color: false }) ?? message.code}`)
}

/** The package is ESM only, hence the profile. Types are its own, hence no look at DefinitelyTyped (and no network). */
function typeProblems(tarball: string): string[] {
  const args = [tarball, '--profile', 'esm-only', '--no-definitely-typed', '--no-color', '--no-emoji']
  const { status, stdout, stderr } = spawnSync('attw', args, { encoding: 'utf8' })
  return status === 0 ? [] : [`are-the-types-wrong:\n${stdout}${stderr}`]
}

const folder = mkdtempSync(join(tmpdir(), 'samekey-pack-'))
try {
  const { tarball, files } = buildAndPack(folder)
  const problems = [...fileProblems(files), ...(await publishProblems(tarball)), ...typeProblems(tarball)]
  for (const problem of problems) console.error(problem)
  console.log(`package: ${files.length} files, ${problems.length} problems`)
  if (problems.length > 0) process.exitCode = 1
} finally {
  rmSync(folder, { recursive: true })
}
