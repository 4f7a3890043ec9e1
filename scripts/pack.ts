/** Builds the package and packs it, so that what is checked is what would be published. */
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { root } from './entries.ts'

export interface Packed {
  tarball: string
  /** Paths inside the package: `dist/index.js`. */
  files: string[]
}

/** @param folder where the tarball goes; it must exist. */
export function buildAndPack(folder: string): Packed {
  run('npm', ['run', '--silent', 'build'])
  // Without scripts: `prepack` would build again, and its output would stand before the JSON.
  const [report] = JSON.parse(run('npm', ['pack', '--ignore-scripts', '--json', '--pack-destination', folder]))
  return {
    tarball: join(folder, report.filename),
    files: report.files.map((file: { path: string }) => file.path),
  }
}

function run(command: string, args: string[]): string {
  const { status, stdout, stderr, error } = spawnSync(command, args, { cwd: root, encoding: 'utf8' })
  if (error) throw error
  if (status !== 0) throw new Error(`${command} ${args.join(' ')} ended with ${status}:\n${stdout}${stderr}`)
  return stdout
}
