/**
 * Finds a Chromium for the browser tests, and installs Debian's where root and apt allow it. Prints the path. Without
 * one the browser tests are skipped; under CI that is an error, because a skipped test proves nothing.
 */
import { spawnSync } from 'node:child_process'
import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const names = ['chromium', 'chromium-browser', 'google-chrome-stable', 'google-chrome']
const elsewhere = [
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
  '/Applications/Chromium.app/Contents/MacOS/Chromium',
]

/** CHROMIUM_PATH wins; then whatever stands on the path; then the usual places of macOS. */
export function findChromium(): string | undefined {
  const folders = (process.env.PATH ?? '').split(delimiter)
  const onPath = names.flatMap((name) => folders.map((folder) => join(folder, name)))
  return [process.env.CHROMIUM_PATH, ...onPath, ...elsewhere].find((path) => path && isExecutable(path))
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

function installChromium(): void {
  if (process.getuid?.() !== 0 || spawnSync('apt-get', ['--version']).status !== 0) {
    say('no Chromium here, and installing one takes apt-get and root')
    return
  }
  say('installing Debian’s chromium (about a minute)')
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
  for (const args of [
    ['update', '-qq'],
    ['install', '-y', '-qq', '--no-install-recommends', 'chromium'],
  ]) {
    const { status, stdout, stderr } = spawnSync('apt-get', args, { env, encoding: 'utf8' })
    // An update that fails for one source may still have refreshed the one that matters.
    if (status !== 0) say(`apt-get ${args[0]} ended with ${status}:\n${stdout}${stderr}`)
  }
}

function say(line: string): void {
  process.stderr.write(`browsers: ${line}\n`)
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  if (findChromium() === undefined) installChromium()
  const path = findChromium()
  if (path !== undefined) {
    console.log(path)
  } else if (process.env.CI) {
    say('failed: CI needs a Chromium')
    process.exitCode = 1
  } else {
    say('browser tests will be skipped; set CHROMIUM_PATH or install chromium to run them')
  }
}
