import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { build } from 'esbuild'
import ts from 'typescript'
import { describe, expect, test } from 'vitest'
import { entries, root, sourceAliases } from '../../scripts/entries.ts'

const specifiers = entries.map(({ specifier }) => specifier)
const read = (file: string) => readFileSync(join(root, file), 'utf8')

test('tsconfig.json names the same entries as package.json, for the same sources', () => {
  const { config } = ts.parseConfigFileTextToJson('tsconfig.json', read('tsconfig.json'))
  const expected = Object.fromEntries(entries.map(({ specifier, source }) => [specifier, [`./${source}`]]))
  expect(config.compilerOptions.paths).toEqual(expected)
})

describe('every subpath that a document names exists', () => {
  const documents = globSync(['README.md', 'docs/**/*.md', 'examples/**/*.{md,ts}', 'src/**/*.ts'], { cwd: root })
  test.for(documents)('%s', (file) => {
    const named = [...read(file).matchAll(/(?<=['"`])samekey(?:\/[a-z][\w/-]*)?(?=['"`])/g)].map(([name]) => name)
    expect(named.filter((name) => !specifiers.includes(name))).toEqual([])
  })
})

describe('what a front end imports', () => {
  const forBrowsers = [
    'samekey',
    'samekey/fetch',
    'samekey/dialects',
    'samekey/errors',
    'samekey/memory',
    'samekey/indexeddb',
  ]
  test.for(forBrowsers)('%s bundles for a browser, without Node, database drivers and the test kit', async (name) => {
    const files = await bundledFiles(name)
    expect(files.filter((file) => /^src\/(server|msw|testing)\/|node_modules\/(pg|msw)\//.test(file))).toEqual([])
  })

  test('samekey/fetch does not carry ky', async () => {
    expect((await bundledFiles('samekey/fetch')).filter((file) => file.includes('node_modules/ky/'))).toEqual([])
  })
})

/** For `platform: 'browser'` esbuild refuses every `node:` import, so success alone proves that there is none. */
async function bundledFiles(name: string): Promise<string[]> {
  const { metafile } = await build({
    stdin: { contents: `export * from '${name}'`, resolveDir: root },
    bundle: true,
    format: 'esm',
    platform: 'browser',
    alias: sourceAliases,
    absWorkingDir: root,
    metafile: true,
    write: false,
    logLevel: 'silent',
  })
  return Object.keys(metafile.inputs)
}
