import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { entries, root } from '../../scripts/entries.ts'
import { buildAndPack } from '../../scripts/pack.ts'

/**
 * The tarball, not the tree: what a stranger gets. One empty project with the package installed; the consumers are
 * folders inside it, each with its own settings.
 */
const project = mkdtempSync(join(tmpdir(), 'samekey-install-'))

beforeAll(() => {
  const { tarball } = buildAndPack(project)
  write('package.json', JSON.stringify({ name: 'consumer', private: true, type: 'module' }))
  run('npm', ['install', '--prefer-offline', '--no-audit', '--no-fund', '--loglevel=error', tarball])
  // The consumer's own tools and optional peers, at the versions this repository has anyway.
  for (const name of ['typescript', 'vite', 'msw', 'pg', '@types/pg', '@types/node']) link(name)
})

afterAll(() => rmSync(project, { recursive: true, force: true }))

const specifiers = entries.map(({ specifier }) => specifier)
const importAll = specifiers.map((name, index) => `import * as entry${index} from '${name}'`)
const useAll = `export const all = [${specifiers.map((_, index) => `entry${index}`).join(', ')}]`

test('it depends on nothing but its own dependencies: peers are not installed unasked', () => {
  const { packages } = JSON.parse(readFileSync(join(project, 'package-lock.json'), 'utf8'))
  expect(Object.keys(packages)).not.toContain('node_modules/msw')
  expect(Object.keys(packages)).not.toContain('node_modules/pg')
})

test.for(specifiers)('Node imports %s', (name) => {
  const script = `import * as entry from '${name}'; console.log('exports:', Object.keys(entry).length)`
  expect(run(process.execPath, ['--input-type=module', '--eval', script])).toMatch(/^exports: [1-9]/m)
})

describe.for([
  { name: 'nodenext', module: 'nodenext', moduleResolution: 'nodenext' },
  { name: 'bundler', module: 'esnext', moduleResolution: 'bundler' },
])('TypeScript with module resolution $name', ({ name, ...resolution }) => {
  test('compiles an import of every entry, library declarations included', () => {
    const compilerOptions = { ...resolution, ...strictest, target: 'es2022', lib: ['es2023', 'dom', 'dom.iterable'] }
    write(`${name}/tsconfig.json`, JSON.stringify({ compilerOptions, files: ['main.ts'] }))
    write(`${name}/main.ts`, [...importAll, useAll].join('\n'))
    expect(run(process.execPath, ['node_modules/typescript/bin/tsc', '-p', name])).toBe('')
  })
})

/** The consumer may be stricter than we are; our declarations must not be what stops it. */
const strictest = {
  noEmit: true,
  strict: true,
  exactOptionalPropertyTypes: true,
  noUncheckedIndexedAccess: true,
  verbatimModuleSyntax: true,
  skipLibCheck: false,
  types: ['node'],
}

test('Vite builds a page with the front-end entries', () => {
  const frontEnd = [
    'samekey',
    'samekey/fetch',
    'samekey/dialects',
    'samekey/errors',
    'samekey/memory',
    'samekey/indexeddb',
  ]
  write('vite/index.html', '<script type="module" src="main.js"></script>')
  const imports = frontEnd.map((name, index) => `import * as entry${index} from '${name}'`)
  write('vite/main.js', `${imports.join('\n')}\nconsole.log(${frontEnd.map((_, index) => `entry${index}`).join(', ')})`)
  const output = run(process.execPath, ['node_modules/vite/bin/vite.js', 'build', 'vite', '--logLevel', 'warn'])
  // A `node:` import would only be a warning: "externalized for browser compatibility".
  expect(output).toBe('')
  expect(existsSync(join(project, 'vite/dist/index.html'))).toBe(true)
})

function write(path: string, contents: string): void {
  mkdirSync(dirname(join(project, path)), { recursive: true })
  writeFileSync(join(project, path), contents)
}

function link(name: string): void {
  const target = join(project, 'node_modules', name)
  mkdirSync(dirname(target), { recursive: true })
  symlinkSync(join(root, 'node_modules', name), target, 'junction')
}

/** Runs in the consumer's project. What it prints, warnings included, is the result. */
function run(command: string, args: string[]): string {
  const env = { ...process.env, NODE_ENV: undefined }
  const { status, stdout, stderr, error } = spawnSync(command, args, { cwd: project, encoding: 'utf8', env })
  if (error) throw error
  if (status !== 0) throw new Error(`${command} ${args[0]} ended with ${status}:\n${stdout}${stderr}`)
  return stdout + stderr
}
