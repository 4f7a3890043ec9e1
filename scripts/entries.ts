/** The library's entry points, read from package.json `exports`: the one list that the build and the checks share. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

// Not import.meta.dirname: tsup bundles its config, and keeps only import.meta.url true to this file.
export const root: string = fileURLToPath(new URL('..', import.meta.url))

interface Manifest {
  name: string
  version: string
  exports: Record<string, string | { types: string; default: string }>
  dependencies: Record<string, string>
  peerDependencies: Record<string, string>
  scripts: Record<string, string>
}

export const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as Manifest

export interface Entry {
  /** What a user imports: `samekey/server/node`. */
  specifier: string
  /** The source, relative to the repository: `src/server/node.ts`. */
  source: string
  /** The built file below `dist`, without extension: `server/node`. */
  output: string
}

export const entries: Entry[] = Object.entries(manifest.exports).flatMap(([subpath, target]) => {
  if (typeof target === 'string') return [] // package.json itself
  const output = target.default.replace(/^\.\/dist\//, '').replace(/\.js$/, '')
  return [{ specifier: manifest.name + subpath.slice(1), source: `src/${output}.ts`, output }]
})

/** Public name to absolute source file, as bundlers' `alias` options want it. */
export const sourceAliases: Record<string, string> = Object.fromEntries(
  entries.map(({ specifier, source }) => [specifier, join(root, source)]),
)

/** The same for the built files. */
export const distAliases: Record<string, string> = Object.fromEntries(
  entries.map(({ specifier, output }) => [specifier, join(root, 'dist', `${output}.js`)]),
)
