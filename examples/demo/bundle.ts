/** Programs in one file each: the demo starts a hundred processes, and most of a start is finding modules. */
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

/** File of a program, such as `orders/shop` or `demo/client-plain`. */
export type FileOf = (program: string) => string

const sources = [
  'orders/shop',
  'orders/worker',
  'orders/provider',
  'orders/relay',
  'orders/mailer',
  'demo/leash',
  'demo/client-plain',
  'demo/client-samekey',
]

export function bundlePrograms(folder: string): Promise<FileOf> {
  return bundle(new URL('..', import.meta.url), sources, folder)
}

/** @param sources their places below `base`, without `.ts`. */
export async function bundle(base: URL, sources: readonly string[], folder: string): Promise<FileOf> {
  const outbase = fileURLToPath(base)
  await build({
    entryPoints: sources.map((source) => join(outbase, `${source}.ts`)),
    outbase,
    outdir: folder,
    outExtension: { '.js': '.mjs' },
    bundle: true,
    splitting: true,
    platform: 'node',
    format: 'esm',
    external: ['pg-native'],
    // Packages that are CommonJS look for `require`.
    banner: { js: `import { createRequire } from 'node:module'; const require = createRequire(import.meta.url)` },
    logLevel: 'warning',
  })
  return (program) => join(folder, `${program}.mjs`)
}
