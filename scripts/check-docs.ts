/**
 * Type-checks every TypeScript example of README.md, docs/ and the doc comments in src, as a user would compile it: an
 * example that does not compile is worse than none. Names that examples take for granted (`cart`, `session`) are
 * declared in test/package/docs-prelude.d.ts. A block that must not compile says why: ```ts no-check shows the mistake.
 */
import { globSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import ts from 'typescript'
import { root } from './entries.ts'

interface Example {
  /** The document, relative to the repository. */
  file: string
  /** The line of the document on which the code starts, from 1. */
  line: number
  language: string
  code: string
}

const fence = '(```+)(ts|tsx|typescript)\\b[ \\t]*(.*)$'
const openingIn = { markdown: new RegExp(`^(\\s*)${fence}`), comment: new RegExp(`^(\\s*\\* \\s*)${fence}`) }
const problems: string[] = []

/** Line by line, because a message must point at the line of the document. Works on Markdown and in doc comments. */
function examplesIn(file: string): Example[] {
  const lines = readFileSync(join(root, file), 'utf8').split('\n')
  const opening = file.endsWith('.md') ? openingIn.markdown : openingIn.comment
  const examples: Example[] = []
  for (let at = 0; at < lines.length; at++) {
    const match = opening.exec(lines[at] ?? '')
    if (match === null) continue
    const [, margin = '', ticks = '', language = '', info = ''] = match
    const end = lines.findIndex((line, index) => index > at && line.replace(/^\s*\*?\s*/, '') === ticks)
    if (end === -1) {
      problems.push(`${file}:${at + 1}: the code block is never closed`)
      break
    }
    if (info.startsWith('no-check')) {
      if (info.trim() === 'no-check') problems.push(`${file}:${at + 1}: no-check needs a reason: \`\`\`ts no-check why`)
    } else {
      const code = lines.slice(at + 1, end).map((line) => stripMargin(line, margin))
      examples.push({ file, line: at + 2, language, code: code.join('\n') })
    }
    at = end
  }
  return examples
}

/** An `@example` without a code block would look like documentation and never be compiled. */
function bareExamplesIn(file: string): string[] {
  const comments = readFileSync(join(root, file), 'utf8').matchAll(/^\s*\* @example.*\n(?:\s*\*(?!\/| @).*\n)*/gm)
  return [...comments].flatMap(({ 0: text, index, input }) => {
    if (text.includes('```')) return []
    return [`${file}:${input.slice(0, index).split('\n').length}: @example needs a \`\`\`ts block`]
  })
}

/** An empty line of a doc comment is ` *`, without the margin's last space. */
function stripMargin(line: string, margin: string): string {
  return line.startsWith(margin) ? line.slice(margin.length) : line.replace(/^\s*\*?\s*/, '')
}

/** Diagnostics per example. The examples exist only in memory, beside their document, so that imports resolve there. */
function check(examples: Example[]): void {
  const config = ts.getParsedCommandLineOfConfigFile(join(root, 'tsconfig.json'), {}, parseHost)
  if (config === undefined) throw new Error('tsconfig.json cannot be read')
  const options: ts.CompilerOptions = { ...config.options, moduleDetection: ts.ModuleDetectionKind.Force }
  const byPath = new Map(
    examples.map((example) => {
      const extension = example.language === 'tsx' ? 'tsx' : 'ts'
      return [join(root, `${example.file}.${example.line}.${extension}`), example]
    }),
  )
  const host = ts.createCompilerHost(options)
  const { fileExists, readFile, getSourceFile } = host
  host.fileExists = (path) => byPath.has(path) || fileExists.call(host, path)
  host.readFile = (path) => byPath.get(path)?.code ?? readFile.call(host, path)
  host.getSourceFile = (path, languageVersion, ...rest) => {
    const example = byPath.get(path)
    if (example === undefined) return getSourceFile.call(host, path, languageVersion, ...rest)
    return ts.createSourceFile(path, example.code, languageVersion)
  }

  const prelude = join(root, 'test/package/docs-prelude.d.ts')
  const program = ts.createProgram([prelude, ...byPath.keys()], options, host)
  for (const path of [prelude, ...byPath.keys()]) {
    const source = program.getSourceFile(path)
    const found = [...program.getSyntacticDiagnostics(source), ...program.getSemanticDiagnostics(source)]
    problems.push(...found.map((diagnostic) => describe(diagnostic, byPath.get(path))))
  }
}

const parseHost: ts.ParseConfigFileHost = {
  ...ts.sys,
  onUnRecoverableConfigFileDiagnostic: (diagnostic) => {
    throw new Error(ts.flattenDiagnosticMessageText(diagnostic.messageText, '\n'))
  },
}

function describe({ file, start = 0, messageText }: ts.Diagnostic, example: Example | undefined): string {
  const { line = 0, character = 0 } = file?.getLineAndCharacterOfPosition(start) ?? {}
  const name = example?.file ?? relative(root, file?.fileName ?? '')
  return `${name}:${line + (example?.line ?? 1)}:${character + 1}: ${ts.flattenDiagnosticMessageText(messageText, '\n  ')}`
}

const files = globSync(['README.md', 'docs/**/*.md', 'examples/**/*.md', 'src/**/*.ts'], { cwd: root }).sort()
const examples = files.flatMap(examplesIn)
problems.push(...files.filter((file) => file.endsWith('.ts')).flatMap(bareExamplesIn))
check(examples)
for (const problem of problems) console.error(problem)
console.log(`docs: ${examples.length} examples in ${files.length} files, ${problems.length} problems`)
if (problems.length > 0) process.exitCode = 1
