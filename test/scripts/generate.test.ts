import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { root } from '../../scripts/entries.ts'
import { faults, renderFaults } from '../../scripts/fault-docs.ts'
import { generate, renderBlocks, run } from '../../scripts/generate.ts'
import { renderDiagram, renderStates, renderVerdicts, shownVerdicts } from '../../scripts/machine-docs.ts'
import { verdictMeanings } from '../../src/protocol/events.ts'
import { stateMeanings, stateNames } from '../../src/protocol/states.ts'

const folder = mkdtempSync(join(tmpdir(), 'samekey-generate-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const place = (name: string, content = ''): string =>
  `<!-- generated:${name} -->\n${content}<!-- /generated:${name} -->`
const document = ['# Title', ...Object.keys(renderBlocks()).map((name) => place(name, 'old\n')), 'The end.'].join(
  '\n\n',
)

describe('the diagram', () => {
  const lines = renderDiagram().split('\n')
  const arrows = lines.flatMap((line) => {
    const match = /^ {2}(\S+) --> (\S+): (.+)$/.exec(line)
    return match === null ? [] : [{ from: match[1] as string, to: match[2] as string, label: match[3] as string }]
  })

  it('is a Mermaid state diagram', () => {
    expect(lines.slice(0, 2)).toEqual(['```mermaid', 'stateDiagram-v2'])
    expect(lines.filter((line) => line === '```')).toHaveLength(1)
    expect(lines).toContain('  [*] --> queued')
  })

  it('is readable: one arrow per pair, few of them, with few words', () => {
    const pairs = arrows.map(({ from, to }) => `${from} ${to}`)
    expect(new Set(pairs).size).toBe(pairs.length)
    expect(arrows.length).toBeLessThan(32)
    expect(arrows.filter(({ from, to }) => from === to)).toEqual([])
    for (const { label } of arrows) {
      expect(label.replace(', …', '').split(', ').length, label).toBeLessThanOrEqual(3)
      // Colons and semicolons end a label in Mermaid.
      expect(label).toMatch(/^[a-z ,…]+$/)
    }
  })

  it('shows every state, alone or in a box with those that do the same', () => {
    const boxes = [...renderDiagram().matchAll(/state "(.+)" as (\S+)/g)].map(([, names, box]) => ({ names, box }))
    expect(boxes).toEqual([
      { names: 'queued, waiting or blocked', box: 'queued' },
      { names: 'rejected, conflicted or cancelled', box: 'rejected' },
    ])
    const shown = new Set(arrows.flatMap(({ from, to }) => [from, to]))
    for (const { names = '', box = '' } of boxes)
      if (shown.has(box)) for (const name of names.split(/, | or /)) shown.add(name)
    expect(stateNames.filter((name) => !shown.has(name))).toEqual([])
  })

  it('P42: nothing leads out of unknown by itself but a late answer', () => {
    const words = new Set(arrows.filter(({ from }) => from === 'unknown').flatMap(({ label }) => label.split(', ')))
    expect([...words].sort()).toEqual(['abandon', 'cancel', 'check', 'late answer', 'resolve', 'retry', '…'])
  })
})

describe('the table of states', () => {
  const rows = renderStates()
    .split('\n')
    .filter((line) => line.startsWith('| `'))
  const cells = new Map(
    rows.map((row) => row.split('|').map((cell) => cell.trim())).map(([, name, ...rest]) => [name?.slice(1, -1), rest]),
  )

  it('has a row for each state, with its meaning', () => {
    expect([...cells.keys()]).toEqual([...stateNames])
    for (const name of stateNames) expect(cells.get(name)?.[0]).toBe(stateMeanings[name])
  })

  it('P45: says what a person can do, in the words of the API', () => {
    for (const name of ['unknown', 'waiting', 'processing'] as const) {
      for (const word of ['cancel', 'retry', 'resolve', 'abandon'])
        expect(cells.get(name)?.[2]).toContain(`\`${word}\``)
    }
    expect(cells.get('succeeded')?.[2]).toContain('`acknowledge`, `forget`')
    expect(cells.get('succeeded')?.[2]).not.toContain('`cancel`')
  })

  it('P42: says that what is unknown goes nowhere by itself', () => {
    expect(cells.get('unknown')?.[1]).toMatch(
      /^nothing; an answer that comes late makes it `succeeded`, `rejected` or `cancelled`$/,
    )
    expect(cells.get('processing')?.[1]).toContain('its monitor is asked')
    expect(cells.get('cancelling')?.[1]).toContain('its key is voided')
    expect(cells.get('waiting')?.[1]).toContain('is sent')
  })
})

describe('the table of faults', () => {
  const row = (id: string) =>
    renderFaults()
      .split('\n')
      .find((line) => line.startsWith(`| ${id} |`)) ?? ''

  it('has each fault that a client lives through, once, in order', () => {
    const ids = faults.map(({ id }) => id)
    expect(ids).toEqual([...new Set(ids)].sort((a, b) => Number(a.slice(1)) - Number(b.slice(1))))
    expect(ids).toEqual(expect.arrayContaining(['F2', 'F3', 'F4', 'F5', 'F6', 'F7', 'F8', 'F9', 'F13', 'F24']))
  })

  it('F5, F13, F24: a lost answer is asked for again, and unknown where that is not safe', () => {
    expect(row('F5')).toContain('`queued` → `sending` → `waiting` (ambiguous) → `sending` → `succeeded`')
    expect(row('F13')).toContain('`unknown` (window over)')
    expect(row('F24')).toContain('`unknown` (server does not deduplicate)')
    expect(row('F19')).toContain('`cancelling` (cancel) → `cancelled` (voided)')
  })
})

describe('the table of answers', () => {
  const rows = renderVerdicts().split('\n').slice(2)

  it('has a row for each verdict', () => {
    expect([...shownVerdicts].sort()).toEqual(Object.keys(verdictMeanings).sort())
    expect(new Set(rows).size).toBe(rows.length)
  })

  it('P27, H25: tells a refusal after a lost answer from one of the first attempt', () => {
    const row = rows.find((line) => line.includes('another 4xx, without proof'))
    expect(row).toBe(
      '| another 4xx, without proof | `rejected` | `cancelling` (refusal); where the server cannot void: `waiting` (refused without proof) | `rejected` |',
    )
  })

  it('F24: tells what is never repeated to a server that does not de-duplicate', () => {
    const row = rows.find((line) => line.includes('network error'))
    expect(row).toMatch(
      /`waiting` \(ambiguous\) \| `waiting` \(ambiguous\) \| `unknown` \(server does not deduplicate\) \|$/,
    )
  })
})

describe('generate', () => {
  const blocks = { one: 'first', two: 'a\nb' }
  const text = `x\n${place('one')}\ny\n${place('two', 'old $& text\n')}\nz`

  it('puts blocks between their markers and leaves everything else alone', () => {
    expect(generate(text, blocks)).toEqual({
      text: `x\n${place('one', 'first\n')}\ny\n${place('two', 'a\nb\n')}\nz`,
      stale: ['one', 'two'],
      problems: [],
    })
  })

  it('says only what is stale, and nothing the second time', () => {
    const once = generate(text, blocks).text
    expect(generate(once, blocks)).toEqual({ text: once, stale: [], problems: [] })
    expect(generate(once, { ...blocks, two: 'c' }).stale).toEqual(['two'])
  })

  it.each([
    ['', 'no place'],
    ['<!-- generated:one -->', 'half a place'],
    ['<!-- /generated:one --><!-- generated:one -->', 'half a place'],
    [place('one') + place('one'), 'more than one place'],
  ])('says what to add where the markers are missing: %j', (broken, found) => {
    const { problems, text: left } = generate(broken, { one: 'first' })
    expect(left).toBe(broken)
    expect(problems).toHaveLength(1)
    expect(problems[0]).toContain(`there is ${found} for "one"`)
    expect(problems[0]).toContain('<!-- generated:one -->\n<!-- /generated:one -->')
  })

  it('says which place has no block any more', () => {
    expect(generate(text + place('three'), blocks).problems).toEqual([
      'there is a place for "three", and no such block',
    ])
  })
})

describe('run', () => {
  const file = join(folder, 'README.md')

  it('writes stale blocks, and checks without writing', () => {
    writeFileSync(file, document)
    const stale = run([file, '--check'])
    expect(stale).toMatchObject({ code: 1 })
    expect(stale.output).toMatch(/stale in .*README\.md: verdicts, faults, diagram, states\. Run: npm run generate$/)
    expect(readFileSync(file, 'utf8')).toBe(document)
    expect(run([file])).toMatchObject({ code: 0 })
    expect(readFileSync(file, 'utf8')).toContain(renderStates())
    expect(run([file])).toMatchObject({ code: 0, output: expect.stringContaining('up to date') })
    expect(run([file, '--check'])).toMatchObject({ code: 0 })
  })

  it('says what to do where the file or a place is missing', () => {
    expect(run([join(folder, 'none.md')])).toMatchObject({ code: 1, output: expect.stringContaining('write it first') })
    writeFileSync(file, '# Title\n')
    expect(run([file])).toMatchObject({ code: 1, output: expect.stringContaining('<!-- generated:diagram -->') })
    expect(readFileSync(file, 'utf8')).toBe('# Title\n')
  })

  it('is what the command runs', () => {
    writeFileSync(file, document)
    const { status, stdout } = spawnSync(
      process.execPath,
      ['--import', 'tsx', 'scripts/generate.ts', file, '--check'],
      {
        cwd: root,
        encoding: 'utf8',
      },
    )
    expect([status, stdout]).toEqual([1, expect.stringContaining('stale')])
  })
})
