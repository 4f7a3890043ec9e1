/** Renders src/server/postgres/migrations.ts from the SQL files beside it: files for people, a module for every bundler. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from './entries.ts'

const folder = 'src/server/postgres/sql'

/** Where it belongs, relative to the repository. */
export const migrationsFile = 'src/server/postgres/migrations.ts'

/** @throws Error for a file that cannot be a migration. */
export function renderMigrations(): string {
  const steps = readdirSync(join(root, folder))
    .sort()
    .map((file, index) => {
      const sql = readFileSync(join(root, folder, file), 'utf8')
      const name = /^(\d{3}-[a-z-]+)\.sql$/.exec(file)?.[1]
      if (name === undefined || Number(name.slice(0, 3)) !== index + 1) {
        throw new Error(`${folder}/${file}: migrations are named 001-keys.sql, 002-..., without a gap`)
      }
      if (/[`\\]|\$\{/.test(sql)) throw new Error(`${folder}/${file}: no backtick, backslash or \${ please`)
      return `  {\n    version: ${index + 1},\n    name: '${name}',\n    sql: \`${sql}\`,\n  },\n`
    })
  return `// Generated from the files in ./sql by \`npm run generate\`: change those.

/** One step of the schema. Never changed once published; later steps are added behind it. */
export interface Migration {
  readonly version: number
  readonly name: string
  /** Plain SQL, one or more statements, to be run in one transaction. */
  readonly sql: string
}

/** All steps in order, for those who run migrations with a tool of their own; the same texts are published as files. */
export const migrations: readonly Migration[] = [
${steps.join('')}]
`
}
