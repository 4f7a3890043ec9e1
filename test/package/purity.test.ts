import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import ts from 'typescript'
import { describe, expect, test } from 'vitest'
import { root } from '../../scripts/entries.ts'

/** Time, chance and the platform: whatever makes the same call answer differently twice. */
const ambient = [
  'Date',
  'Math.random',
  'performance',
  'crypto',
  'setTimeout',
  'setInterval',
  'setImmediate',
  'queueMicrotask',
]
// Not `window`: in the protocol that is a word of its own, the time in which a send is still safe.
const platform = ['fetch', 'globalThis', 'navigator', 'process', 'localStorage', 'indexedDB']

/** Outside src/protocol, these come as arguments (Clock, Ids), made in src/platform only. */
const owned = ['Date.now', 'new Date', 'performance', 'Math.random', 'crypto', 'setTimeout', 'setInterval']

/** Files other than src/platform that may use one of `owned`, and why. */
const allowed: Record<string, { uses: string[]; because: string }> = {
  'src/stores/indexeddb-connection.ts': {
    uses: ['setTimeout'],
    because: 'a store stands beside the platform and bounds its waits without it; a clock can be handed in',
  },
  'src/testing/conformance/conversation.ts': {
    uses: ['Date.now'],
    because: 'a server whose time the suite does not own is on the system’s',
  },
  'src/testing/virtual-clock.ts': {
    uses: ['crypto'],
    because: 'it waits until WebCrypto is idle, which virtual time cannot see, and takes nothing from it',
  },
}

const sources = globSync('src/**/*.ts', { cwd: root }).map((file) => file.replaceAll('\\', '/'))
const inProtocol = (file: string) => file.startsWith('src/protocol/')
const inPlatform = (file: string) => file.startsWith('src/platform/')

describe('src/protocol is a pure function of its input', () => {
  test.for(sources.filter(inProtocol))('%s names no clock, no chance and no platform', (file) => {
    expect(usesOf(file, [...ambient, ...platform])).toEqual([])
  })
})

describe('time and chance have one owner', () => {
  test.for(sources.filter((file) => !inProtocol(file) && !inPlatform(file)))('%s', (file) => {
    expect(usesOf(file, owned)).toEqual(allowed[file]?.uses ?? [])
  })

  test('the exceptions are files that exist, each with a reason', () => {
    for (const [file, { because }] of Object.entries(allowed)) {
      expect(sources).toContain(file)
      expect(because).not.toBe('')
    }
  })
})

/** Which of `names` the code uses, as values. Comments, strings, types, and members of other objects do not count. */
function usesOf(file: string, names: string[]): string[] {
  const source = ts.createSourceFile(file, readFileSync(join(root, file), 'utf8'), ts.ScriptTarget.ES2022, true)
  const found = new Set<string>()
  const visit = (node: ts.Node): void => {
    if (ts.isTypeNode(node)) return
    if (ts.isIdentifier(node) && isReference(node)) {
      const spellings = [node.text, `new ${node.text}`].filter((name) => !name.startsWith('new ') || isBareNew(node))
      if (ts.isPropertyAccessExpression(node.parent)) spellings.push(`${node.text}.${node.parent.name.text}`)
      for (const name of spellings) if (names.includes(name)) found.add(name)
    }
    ts.forEachChild(node, visit)
  }
  visit(source)
  return [...found].sort()
}

/** Not the `fetch` of `options.fetch`, of `{ fetch: f }` or of a parameter's own declaration. */
function isReference(node: ts.Identifier): boolean {
  const { parent } = node
  if (ts.isPropertyAccessExpression(parent)) return parent.expression === node || isGlobalObject(parent.expression)
  if (ts.isPropertyAssignment(parent) || ts.isMethodDeclaration(parent)) return parent.name !== node
  return !ts.isBindingElement(parent) && !ts.isParameter(parent) && !ts.isPropertySignature(parent)
}

function isGlobalObject(node: ts.Expression): boolean {
  return ts.isIdentifier(node) && ['globalThis', 'window', 'self'].includes(node.text)
}

/** `new Date()` reads the clock; `new Date(at)` only formats a number that someone handed in. */
function isBareNew(node: ts.Identifier): boolean {
  return ts.isNewExpression(node.parent) && (node.parent.arguments?.length ?? 0) === 0
}
