import { defineConfig } from 'tsup'
import { entries, manifest } from './scripts/entries.ts'

const packages = [...Object.keys(manifest.dependencies), ...Object.keys(manifest.peerDependencies)]

/**
 * One config for every entry: with splitting, a class that two entries share is the same class in both. Two configs
 * would each bundle their own copy, and `instanceof` would fail between `samekey` and `samekey/errors`.
 */
export default defineConfig({
  entry: Object.fromEntries(entries.map(({ output, source }) => [output, source])),
  format: 'esm',
  target: 'es2022',
  platform: 'neutral',
  splitting: true,
  sourcemap: true,
  clean: true,
  silent: true,
  // tsc writes the declarations: tsup's own step bundles them per entry, which would duplicate the classes' types.
  dts: false,
  // By default tsup turns `node:sqlite` into `sqlite`, which does not exist.
  removeNodeProtocol: false,
  external: [/^node:/, ...packages.map((name) => new RegExp(`^${name}($|/)`))],
})
