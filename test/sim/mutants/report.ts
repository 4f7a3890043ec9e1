/** What became of the planted faults, for people and for programs. */
import type { Hunted } from './hunt.ts'

export function mutantsText(hunted: readonly Hunted[]): string {
  const width = Math.max(...hunted.map(({ name }) => name.length))
  const lines = hunted.map(({ name, killedBy, schedules, rule }) =>
    [name.padEnd(width), (killedBy ?? 'alive').padEnd(6), String(schedules).padStart(6), `  ${rule}`].join(' '),
  )
  const survivors = hunted.filter(({ killedBy }) => killedBy === null).length
  const head = ['planted fault'.padEnd(width), 'caught', 'after '.padStart(6), '  breaks'].join(' ')
  return [head, ...lines, '', `${hunted.length} planted, ${hunted.length - survivors} caught, ${survivors} alive`].join(
    '\n',
  )
}

export function mutantsJson(hunted: readonly Hunted[]): string {
  return JSON.stringify({
    mutants: hunted.map(({ name, rule, killedBy, schedules, seed }) => ({ name, rule, killedBy, schedules, seed })),
    survivors: hunted.filter(({ killedBy }) => killedBy === null).length,
  })
}
