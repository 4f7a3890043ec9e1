/**
 * What an import costs. Bundles what users really write (esbuild: bundled, minified, ESM) and prints gzipped bytes.
 *
 *     npm run size              a table, from the sources
 *     npm run size -- --dist    from the built package
 *     npm run size -- --json    { "entries": [{ "name", "gzip" }] }
 *     npm run size -- --readme  writes the table in README.md
 *     npm run size -- --check   fails when that table is more than a twentieth off
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'
import { distAliases, root, sourceAliases } from './entries.ts'

interface Bundle {
  name: string
  /** What it is, for the README. */
  what: string
  code: string
  platform?: 'browser' | 'node'
}

/** The marked place in README.md. */
const block = /<!-- sizes -->[\s\S]*<!-- \/sizes -->/

const settings = `baseUrl: 'https://api.example.com', scope: () => 'user', auth: async () => ({ scope: 'user', headers: {} })`

// Each result is exported: a bundler would drop what nothing uses.
const bundles: Bundle[] = [
  {
    name: 'client',
    what: '`createClient` with IndexedDB, ky included',
    code: `
      import { createClient } from 'samekey'
      import { samekey } from 'samekey/dialects'
      export const api = createClient({ dialect: samekey, ${settings} })`,
  },
  {
    name: 'fetch-indexeddb',
    what: '`createFetch` with IndexedDB',
    code: `
      import { createFetch } from 'samekey/fetch'
      import { samekey } from 'samekey/dialects'
      import { indexedDbStore } from 'samekey/indexeddb'
      export const safeFetch = createFetch({ dialect: samekey, store: indexedDbStore(), ${settings} })`,
  },
  {
    name: 'sqlite-client',
    what: '`createClient` with SQLite, on Node',
    platform: 'node',
    code: `
      import { createClient } from 'samekey'
      import { samekey } from 'samekey/dialects'
      import { sqliteStore } from 'samekey/sqlite'
      export const api = createClient({ dialect: samekey, store: sqliteStore('outbox.db'), ${settings} })`,
  },
  {
    name: 'server',
    what: '`idempotent` of the server kit',
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

const { values: flags } = parseArgs({
  options: {
    json: { type: 'boolean' },
    dist: { type: 'boolean' },
    readme: { type: 'boolean' },
    check: { type: 'boolean' },
  },
})
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
const readme = join(root, 'README.md')
if (flags.json) {
  console.log(JSON.stringify({ entries }))
} else if (flags.readme) {
  const text = readFileSync(readme, 'utf8')
  writeFileSync(
    readme,
    text.replace(block, () => `<!-- sizes -->\n${table()}\n<!-- /sizes -->`),
  )
} else if (flags.check) {
  const stated = block.exec(readFileSync(readme, 'utf8'))?.[0] ?? ''
  const stale = bundles.filter(({ name, what }) => {
    const kilobytes = Number(new RegExp(`${what.replaceAll('`', '.')} *\\| *([\\d.]+) kB`).exec(stated)?.[1])
    const measured = (entries.find((entry) => entry.name === name)?.gzip ?? 0) / 1000
    return !(Math.abs(kilobytes - measured) <= measured / 20)
  })
  for (const { what } of stale) console.error(`size: README.md is stale on ${what}: run npm run size -- --readme`)
  if (stale.length > 0) process.exitCode = 1
} else {
  for (const { name, gzip } of entries)
    console.log(`${name.padEnd(18)}${(gzip / 1000).toFixed(2).padStart(8)} kB gzipped`)
}

function table(): string {
  const rows = bundles.map(({ name, what }) => {
    const { gzip } = entries.find((entry) => entry.name === name) ?? { gzip: 0 }
    return `| ${what.padEnd(42)} | ${`${Math.round(gzip / 1000)} kB`.padEnd(7)} |`
  })
  return [`| ${'import'.padEnd(42)} | gzipped |`, `| ${'-'.repeat(42)} | ------- |`, ...rows].join('\n')
}
