/**
 * The simulator as one file: several times faster than modules that are translated as they are loaded, and the place
 * where a fault can be planted, as an edit of the source text itself.
 */
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { build, type Plugin } from 'esbuild'

/** An edit of one source file: the text must be there exactly once. */
export interface Edit {
  /** Path from the project's root. */
  readonly file: string
  readonly find: string
  readonly replace: string
}

const root = fileURLToPath(new URL('../..', import.meta.url))

/**
 * Bundles the program, or another one of this folder.
 *
 * @throws Error when the text of an edit is not there exactly once: the source has moved on, and the edit has to follow.
 */
export async function bundle(outfile: string, edits: readonly Edit[] = [], program = 'program.ts'): Promise<void> {
  await build({
    entryPoints: [`${root}test/sim/${program}`],
    outfile,
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node22',
    logLevel: 'silent',
    banner: { js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);" },
    plugins: [editing(edits)],
  })
}

/** The source after the edits of this file. */
export function edited(text: string, edits: readonly Edit[]): string {
  return edits.reduce((before, { file, find, replace }) => {
    const places = before.split(find).length - 1
    if (places !== 1) throw new Error(`${file} holds the text to edit ${places} times, not once:\n${find}`)
    return before.replace(find, () => replace)
  }, text)
}

function editing(edits: readonly Edit[]): Plugin {
  return {
    name: 'planted faults',
    setup({ onLoad }) {
      for (const file of new Set(edits.map((edit) => edit.file))) {
        const path = `${root}${file}`
        onLoad({ filter: new RegExp(`^${path.replace(/[\\.+*?^$()[\]{}|]/g, '\\$&')}$`) }, async () => ({
          contents: edited(
            await readFile(path, 'utf8'),
            edits.filter((edit) => edit.file === file),
          ),
          loader: 'ts',
        }))
      }
    },
  }
}
