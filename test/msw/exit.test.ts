import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'

it('B129: when MSW is closed, hung requests are aborted and the process exits', async () => {
  const program = fileURLToPath(new URL('fixtures/hung.ts', import.meta.url))
  const { stdout } = await promisify(execFile)(process.execPath, [program], { timeout: 20_000 })
  expect(stdout).toBe('TypeError TypeError TypeError')
}, 30_000)
