import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Browser, launch } from 'puppeteer-core'
import { describe } from 'vitest'
import { findChromium } from '../../scripts/browsers.ts'
import { guardAgainstStray } from './stray.ts'

const flags = [
  // Root, as in a container, cannot use the sandbox; the pages are our own.
  '--no-sandbox',
  '--disable-gpu',
  // Without these it talks to its maker's servers at every start.
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]

/**
 * `describe` for tests in a real browser. Where there is no Chromium they are skipped; under CI they run and fail,
 * because a skipped test proves nothing.
 */
export const describeInChromium: typeof describe | typeof describe.skip =
  findChromium() !== undefined || process.env.CI ? describe : describe.skip

/** A headless Chromium with an empty profile. Ends with `close()`, or with this process. */
export async function launchChromium(): Promise<Browser> {
  const executablePath = findChromium()
  if (executablePath === undefined) throw new Error('no Chromium here: run `npx tsx scripts/browsers.ts`')
  const profile = mkdtempSync(join(tmpdir(), 'samekey-chromium-'))
  const browser = await launch({ executablePath, args: flags, userDataDir: profile })
  const pid = browser.process()?.pid
  if (pid === undefined) throw new Error('Chromium did not start')
  const release = guardAgainstStray({ pid, signal: 'SIGKILL', folder: profile })
  browser.process()?.once('exit', () => {
    release()
    rmSync(profile, { recursive: true, force: true, maxRetries: 3 })
  })
  return browser
}
