/** Faults of the server kit. */
import { fault, type Mutant } from './mutant.ts'

const memory = 'src/server/memory.ts'
const decide = 'src/server/decide.ts'

export const ofServer: readonly Mutant[] = [
  fault(
    'key row and effect are two transactions',
    'P54, H13',
    memory,
    '              effects.push(effect)',
    '              effect()',
  ),
  fault(
    'the answer is not stored with the effect',
    'P54',
    memory,
    '        for (const [name, entry] of mine) committed.set(name, entry)\n',
    "        for (const [name, entry] of mine) if (entry.row.state === 'voided') committed.set(name, entry)\n",
  ),
  fault(
    'a rival is not waited for',
    'P54, F7',
    memory,
    "          if (!(await waitFor(rival, waitMs))) return { seen: 'busy' }\n        }\n        if (committed.has(name))",
    '          void rival\n          break\n        }\n        if (committed.has(name))',
  ),
  fault(
    'a voided key is executed after all',
    'P58',
    decide,
    "  if (row.state === 'voided') return { kind: 'voided' }\n",
    "  if (row.state === 'voided') return { kind: 'execute', expiresAt: row.expiresAt }\n",
  ),
  fault(
    'another payload gets the first one’s answer',
    'P7, F8',
    decide,
    "    if (!sameFingerprint(row.fingerprint, request)) return { kind: 'conflict' }\n",
    '    sameFingerprint(row.fingerprint, request)\n',
  ),
  fault(
    'an account’s tag is not compared',
    'P3, H5',
    decide,
    "  return asked.trim() === tag ? 'same' : 'other'",
    "  return asked.trim() === tag ? 'same' : 'same'",
  ),
]
