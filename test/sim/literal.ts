/** A schedule as TypeScript, to be pasted into a test. */
import { plainSetting, type Schedule, type Setting } from './schedule.ts'

/** The text of a `Schedule`; settings that are as usual come from `plainSetting`. */
export function literalOf({ setting, steps }: Schedule): string {
  const unusual = Object.entries(setting).filter(([name, value]) => plainSetting[name as keyof Setting] !== value)
  return [
    'const schedule: Schedule = {',
    `  setting: ${unusual.length === 0 ? 'plainSetting' : `{ ...plainSetting, ${members(unusual)} }`},`,
    '  steps: [',
    ...steps.map((step) => `    ${textOf(step)},`),
    '  ],',
    '}',
  ].join('\n')
}

function members(entries: readonly (readonly [string, unknown])[]): string {
  return entries.map(([name, value]) => `${name}: ${textOf(value)}`).join(', ')
}

function textOf(value: unknown): string {
  if (typeof value === 'string') return `'${value.replace(/[\\']/g, '\\$&')}'`
  if (typeof value === 'number') return String(value).replace(/\B(?=(\d{3})+$)/g, '_')
  if (Array.isArray(value)) return `[${value.map(textOf).join(', ')}]`
  if (typeof value === 'object' && value !== null) return `{ ${members(Object.entries(value))} }`
  return String(value)
}
