/**
 * What an import costs. Bundles what users really write (esbuild: bundled, minified, ESM) and prints gzipped bytes.
 *
 *     npm run size              a table, from the sources
 *     npm run size -- --dist    from the built package
 *     npm run size -- --json    { "entries": [{ "name", "gzip" }] }
 */
import { parseArgs } from 'node:util'
import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'
import { distAliases, root, sourceAliases } from './entries.ts'

interface Bundle {
  name: string
  code: string
  platform?: 'browser' | 'node'
}

const settings = `baseUrl: 'https://api.example.com', scope: () => 'user', auth: async () => ({ scope: 'user', headers: {} })`

// Each result is exported: a bundler would drop what nothing uses.
const bundles: Bundle[] = [
  {
    name: 'client',
    code: `
      import { createClient } from 'samekey'
      import { samekey } from 'samekey/dialects'
      export const api = createClient({ dialect: samekey, ${settings} })`,
  },
  {
    name: 'fetch-indexeddb',
    code: `
      import { createFetch } from 'samekey/fetch'
      import { samekey } from 'samekey/dialects'
      import { indexedDbStore } from 'samekey/indexeddb'
      export const safeFetch = createFetch({ dialect: samekey, store: indexedDbStore(), ${settings} })`,
  },
  {
    name: 'sqlite-client',
    platform: 'node',
    code: `
      import { createClient } from 'samekey'
      import { samekey } from 'samekey/dialects'
      import { sqliteStore } from 'samekey/sqlite'
      export const api = createClient({ dialect: samekey, store: sqliteStore('outbox.db'), ${settings} })`,
  },
  {
    name: 'server',
    platform: 'node',
    code: `export { idempotent } from 'samekey/server'`,
  },
]

async function gzippedBytes({ code, platform = 'browser' }: Bundle, alias: Record<string, string>): Promise<number> {
  const result = await build({
    stdin: { contents: code, resolveDir: root },
    bundle: true,
    minify: true,
    format: 'esm',
    target: 'es2022',
    platform,
    alias,
    write: false,
    logLevel: 'silent',
  })
  return gzipSync(result.outputFiles[0]?.contents ?? '', { level: 9 }).length
}

const { values: flags } = parseArgs({ options: { json: { type: 'boolean' }, dist: { type: 'boolean' } } })
const alias = flags.dist ? distAliases : sourceAliases
const entries: { name: string; gzip: number }[] = []
for (const bundle of bundles) {
  try {
    entries.push({ name: bundle.name, gzip: await gzippedBytes(bundle, alias) })
  } catch (error) {
    console.error(`size: ${bundle.name}: ${error instanceof Error ? error.message : error}`)
    process.exitCode = 1
  }
}
if (flags.json) {
  console.log(JSON.stringify({ entries }))
} else {
  for (const { name, gzip } of entries)
    console.log(`${name.padEnd(18)}${(gzip / 1000).toFixed(2).padStart(8)} kB gzipped`)
}
