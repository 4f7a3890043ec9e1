import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { describe, expect, it } from 'vitest'
import { systemIds } from '../../src/platform/ids.ts'
import { systemLiveness } from '../../src/platform/liveness.ts'

describe('P47, P49: in Node, a dead process is known to be gone', () => {
  const own = systemLiveness(systemIds())

  /** The holder's name of another process. */
  const holderOf = (pid: number | undefined): string => own.holder.replace(`~${process.pid}~`, `~${pid}~`)

  it('a living process is not gone, and a killed one is (no wait for its lease)', async () => {
    const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'ignore' })
    await once(child, 'spawn')
    expect(await own.isGone(holderOf(child.pid))).toBe(false)
    child.kill('SIGKILL')
    await once(child, 'exit')
    expect(await own.isGone(holderOf(child.pid))).toBe(true)
  })

  it('a process of another host is never judged by our process table (no false death)', async () => {
    expect(await own.isGone('other-host~999999999~x')).toBe(false)
  })

  it('a name of another kind is never judged (no false death)', async () => {
    for (const name of ['', '~~', `${own.holder.split('~')[0]}~~x`, `${own.holder.split('~')[0]}~-1~x`, 'tab1']) {
      expect(await own.isGone(name), name).toBe(false)
    }
  })

  it('the name holds no dot, which ends it in a lease token', () => {
    expect(own.holder).not.toContain('.')
  })
})
