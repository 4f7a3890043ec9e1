/** Faults of windows, ages and clocks. */
import { fault, type Mutant } from './mutant.ts'

const window = 'src/protocol/window.ts'

export const ofTime: readonly Mutant[] = [
  fault(
    'the window is not looked at',
    'P35, H10',
    window,
    '  if (firstHandOver(record) === null) return true\n',
    '  if (firstHandOver(record) !== null) return true\n',
  ),
  fault(
    'the window is measured from creation',
    'P19, P35, H55',
    window,
    '  return Math.max(0, times.now - first.at, byServer ?? 0)',
    '  return Math.max(0, times.now - record.createdAt, byServer ?? 0)',
  ),
  fault(
    'the window is measured from the latest hand-over',
    'P19, P35',
    window,
    '  return Math.max(0, times.now - first.at, byServer ?? 0)',
    '  return Math.max(0, times.now - (record.lastHandOverAt ?? first.at))',
  ),
  fault(
    'the window is as long as the retention',
    'P35, H10',
    window,
    '  return Math.max(0, policy.retentionMs - policy.attemptTimeoutMs - policy.transitMs)',
    '  return policy.retentionMs',
  ),
  fault(
    'a clock that stepped back is believed',
    'P35, H40',
    window,
    '  return times.now < record.seenAt - toleratedStepMs',
    '  return times.now < -record.seenAt',
  ),
  fault(
    'intents are forgotten at once',
    'P8, H20',
    'src/protocol/updates.ts',
    '    dueAt: (record.settledAt ?? times.now) + policy.rememberMs,',
    '    dueAt: times.now + 0 * ((record.settledAt ?? 0) + policy.rememberMs),',
  ),
  fault(
    'a derived key is new after the storage was lost',
    'P11, H8',
    'src/engine/new-record.ts',
    '    doubt: since === null ? null : { at: Math.min(since, now), serverAt: since },',
    '    doubt: null,',
  ),
  fault(
    'acknowledging frees the name',
    'P8, H20',
    'src/protocol/transitions.ts',
    "  acknowledged: [to('same', 'P22', [], ['acknowledge'])],",
    "  acknowledged: [to('same', 'P22', [], ['acknowledge'], ['remove'])],",
  ),
]
