/**
 * The arrows of the code base, as one table: what each zone may import. Whatever a row does not name is forbidden.
 * Type-only imports count: a type from above is an arrow upward too.
 */
const protocol = '^src/protocol/'
const ports = '^src/ports\\.ts$'
const errors = '^src/errors\\.ts$'
const engine = '^src/engine/'
const stores = '^src/stores/'
const platform = '^src/platform/'
const nodePlatform = '^src/platform/[^/]+-node\\.ts$'
const decide = '^src/server/decide\\.ts$'
const quietly = '^src/server/quietly\\.ts$'
const adapters = '^src/server/adapters/'
// Not the adapters: the kit itself stands on the web's own types, and needs none of their packages.
const server = '^src/server/(?!adapters/)'
const msw = '^src/msw/'
const testing = '^src/testing/'
const dialects = '^src/dialects\\.ts$'
const setup = '^src/setup\\.ts$'
const fetchEntry = '^src/fetch\\.ts$'
const indexEntry = '^src/index\\.ts$'
const base = [protocol, ports, errors]

const purePackages = ['canonicalize', 'lossless-json', '@noble/hashes', 'uuid', 'structured-headers', 'valibot']

/** `except` takes files out of a zone that have a row of their own. */
const zones = [
  { name: 'protocol', files: protocol, imports: [protocol], packages: purePackages },
  { name: 'ports', files: ports, imports: [protocol] },
  { name: 'errors', files: errors, imports: [protocol] },
  { name: 'dialects', files: dialects, imports: [protocol] },
  { name: 'engine', files: engine, imports: [engine, ...base] },
  { name: 'stores', files: stores, imports: [stores, ...base], packages: ['idb-keyval', 'pg'] },
  { name: 'platform', files: platform, imports: [platform, ...base], packages: ['uuid'] },
  { name: 'server-decide', files: decide, imports: [protocol] },
  { name: 'server', files: server, except: decide, imports: [server, platform, ...base], packages: ['pg'] },
  { name: 'adapters', files: adapters, imports: [adapters, quietly, errors], packages: ['srvx'] },
  { name: 'msw', files: msw, imports: [msw, server, platform, ...base], packages: ['msw'] },
  { name: 'testing', files: testing, imports: [testing, ...base] },
  { name: 'setup', files: setup, imports: [engine, stores, platform, ...base] },
  { name: 'fetch', files: fetchEntry, imports: [setup, engine, ...base] },
  { name: 'index', files: indexEntry, imports: [fetchEntry, setup, engine, ...base], packages: ['ky'] },
]

const packageFiles = (names) => `node_modules/(${names.join('|')})/`

const zoneRules = zones.flatMap(({ name, files, except, imports, packages = [] }) => {
  const from = { path: files, ...(except && { pathNot: except }) }
  return [
    {
      name: `${name}-imports`,
      comment: `${name} may import only what its row in .dependency-cruiser.mjs names`,
      severity: 'error',
      from,
      to: { path: '^src/', pathNot: imports },
    },
    {
      name: `${name}-packages`,
      comment: `${name} may use only these packages: ${packages.join(', ') || 'none'}`,
      severity: 'error',
      from,
      to: { path: 'node_modules', ...(packages.length > 0 && { pathNot: packageFiles(packages) }) },
    },
  ]
})

export default {
  forbidden: [
    ...zoneRules,
    {
      name: 'no-unzoned-file',
      comment: 'every file in src belongs to a zone: give a new folder its row in the table above',
      severity: 'error',
      from: { path: '^src/', pathNot: zones.map(({ files }) => files) },
      to: {},
    },
    {
      name: 'no-cycle',
      severity: 'error',
      from: {},
      to: { circular: true },
    },
    {
      name: 'node-only-where-node-is',
      comment: 'a node: import outside these files breaks every browser bundle',
      severity: 'error',
      from: { path: '^src/', pathNot: ['^src/stores/sqlite', server, adapters, nodePlatform] },
      to: { dependencyTypes: ['core'] },
    },
    {
      name: 'browser-entries-stay-light',
      comment: 'the entries that front ends import never reach Node, a database driver or the test kit',
      severity: 'error',
      from: { path: [indexEntry, fetchEntry, '^src/stores/(memory|indexeddb)\\.ts$'] },
      to: {
        path: [
          packageFiles(['pg', 'msw']),
          '^src/stores/(sqlite|postgres)',
          nodePlatform,
          server,
          adapters,
          msw,
          testing,
        ],
        reachable: true,
      },
    },
    {
      name: 'fetch-without-ky',
      comment: 'samekey/fetch is the small entry',
      severity: 'error',
      from: { path: fetchEntry },
      to: { path: packageFiles(['ky']), reachable: true },
    },
    {
      name: 'declared-packages-only',
      comment: 'what the published code imports stands in dependencies or peerDependencies',
      severity: 'error',
      from: { path: '^src/' },
      to: { dependencyTypes: ['npm-dev', 'npm-no-pkg', 'npm-unknown'], dependencyTypesNot: ['npm-peer'] },
    },
    {
      name: 'resolvable',
      severity: 'error',
      from: {},
      to: { couldNotResolve: true },
    },
  ],
  options: {
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    doNotFollow: { path: 'node_modules' },
    enhancedResolveOptions: { exportsFields: ['exports'], conditionNames: ['types', 'import', 'node', 'default'] },
  },
}
