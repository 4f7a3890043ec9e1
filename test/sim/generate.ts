/** A schedule from a seed: a setting, and steps that are likely to meet each other in the wrong moment. */
import { type Chance, chance } from '../support/chance.ts'
import type {
  Content,
  Fate,
  IntentName,
  Schedule,
  ServerFault,
  Setting,
  Step,
  StoreFault,
  User,
  WorkerFault,
} from './schedule.ts'
import { times } from './schedule.ts'

/** The same seed gives the same schedule. */
export function generate(seed: number): Schedule {
  const by = chance(seed)
  const setting = settingBy(by)
  return { setting, steps: stepsBy(by, setting) }
}

function settingBy(by: Chance): Setting {
  const dialect = by.weighted<Setting['dialect']>([
    [7, 'samekey'],
    [1, 'ietf'],
    [1, 'stripe'],
    [1, 'none'],
  ])
  const isOwn = dialect === 'samekey'
  return {
    dialect,
    identity: isOwn && by.happens(0.2) ? 'cookie' : 'token',
    keys: isOwn && by.happens(0.2) ? 'derived' : 'minted',
    locks: by.happens(0.5),
    channel: by.happens(0.7),
    provesNonDelivery: by.happens(0.5),
    // Where the server does not de-duplicate, a transport that repeats doubles by itself (section 18).
    repeats: dialect !== 'none' && by.happens(0.1),
    dated: by.happens(0.6),
    skewMs: by.happens(0.25) ? (by.below(7200) - 3600) * 1000 : 0,
    attempts: by.happens(0.15) ? 2 + by.below(3) : 12,
    reconcile: by.happens(0.3),
  }
}

function stepsBy(by: Chance, setting: Setting): Step[] {
  const tabs = by.weighted([
    [6, 1],
    [4, 2],
    [1.5, 3],
    [0.5, 5],
  ])
  const names = namesBy(by, setting)
  const steps: Step[] = []
  const opened = new Set<number>()

  /** In a tab that was never opened nothing can happen. */
  function push(step: Step): void {
    if ('tab' in step && !opened.has(step.tab)) {
      opened.add(step.tab)
      if (step.do !== 'open') steps.push({ do: 'open', tab: step.tab })
    }
    steps.push(step)
  }

  if (by.happens(0.5)) push(faultBy(by, setting, tabs))
  if (by.happens(0.3)) for (const step of storyBy(by, setting, tabs, names)) push(step)
  else push(submitBy(by, tabs, names))
  const length = 3 + by.below(by.happens(0.06) ? 26 : 5)
  while (steps.length < length) {
    push(stepBy(by, setting, tabs, names))
    if (by.happens(0.5)) steps.push({ do: 'pass', ms: passBy(by) })
  }
  return steps
}

/** Steps that are dangerous together and seldom meet by chance: time that goes by, or is lost, over an intent in doubt. */
function storyBy(by: Chance, setting: Setting, tabs: number, names: readonly [IntentName, ...IntentName[]]): Step[] {
  const tab = by.below(tabs)
  const submit = submitBy(by, tabs, names)
  const longMs = times.retention - 300_000 + by.below(600_000)
  const long: Step = { do: by.pick(['pass', 'sleep']), ms: longMs }
  const short: Step = { do: 'pass', ms: 50 + by.below(2000) }
  const actOn = (): Step =>
    ({ ...personBy(by, tabs, names), tab, ...('intent' in submit && { intent: submit.intent }) }) as Step
  const inDoubt: Step[] = [
    {
      do: 'network',
      fates: by.weighted<Fate[]>([
        [5, ['answer-lost']],
        [2, ['request-late']],
        [3, fatesBy(by, setting)],
      ]),
    },
    { ...submit, tab } as Step,
    short,
  ]
  return by.weighted<() => Step[]>([
    // Nobody is there until the server has nearly forgotten, or has.
    [4, () => [...inDoubt, { do: by.pick(['kill', 'freeze']), tab }, long, { do: by.pick(['open', 'thaw']), tab }]],
    // The network is gone for as long.
    [2, () => [...inDoubt, { do: 'partition' }, long, { do: 'heal' }]],
    [
      setting.keys === 'derived' ? 0 : 3,
      () => [
        ...inDoubt,
        ...(by.happens(0.5) ? [{ do: 'partition' } as const] : []),
        { do: 'jump', ms: -by.below(2 * times.retention) },
        long,
        { do: 'heal' },
      ],
    ],
    [
      setting.keys === 'derived' ? 12 : 1,
      () => [
        ...inDoubt,
        { do: 'lose-storage' },
        ...(by.happens(0.5) ? [long] : []),
        { do: 'open', tab },
        submitBy(by, tabs, names),
      ],
    ],
    // Sent in the last moment, and late on top.
    [
      setting.dialect === 'samekey' ? 1 : 5,
      () => [
        ...inDoubt,
        { do: 'kill', tab },
        { do: 'pass', ms: times.retention - 3000 - by.below(2 * times.transit) },
        { do: 'network', fates: ['request-late'] },
        { do: 'open', tab },
        { do: 'pass', ms: 2 * times.transit },
      ],
    ],
    // Done behind a redirect, and the next request does not get through.
    [
      setting.dialect === 'none' ? 0 : 3,
      () => [
        {
          do: 'network',
          fates: ['redirect-after', by.pick<Fate>(['refused', 'gateway-429', 'gateway-401', 'gateway-404'])],
        },
        { ...submit, tab } as Step,
        { do: 'pass', ms: 80 + by.below(200) },
        actOn(),
      ],
    ],
    // One copy is refused, the other one comes through.
    [
      setting.repeats ? 12 : 0,
      () => [
        { do: 'network', fates: ['twice', by.pick<Fate>(['refused', 'gateway-429', 'gateway-401', 'gateway-404'])] },
        { ...submit, tab } as Step,
        { do: 'pass', ms: 30 + by.below(200) },
        actOn(),
      ],
    ],
    // Accepted, and somebody else answers for the monitor.
    [
      setting.dialect === 'samekey' ? 3 : 0,
      () => [
        { do: 'server', fault: 'accepts' },
        { do: 'worker', fault: by.pick(workerFaults) },
        { ...submit, tab } as Step,
        { do: 'pass', ms: 60 + by.below(2000) },
        { do: 'network', fates: fatesBy(by, setting) },
        by.happens(0.5) ? actOn() : long,
      ],
    ],
    // The person acts on what is in doubt.
    [3, () => [...inDoubt, actOn(), short, actOn()]],
    // Two users, and somebody who looks.
    [
      1,
      () => [
        { ...submit, tab } as Step,
        short,
        { do: 'sign-in', user: 'bob' },
        ...(by.happens(0.5) ? [submitBy(by, tabs, names)] : []),
        { do: 'list', tab },
        short,
      ],
    ],
    // Frozen on the way to the network, while another tab takes over.
    [
      tabs > 1 ? 5 : 0,
      () => [
        { do: 'open', tab },
        { do: 'open', tab: (tab + 1) % tabs },
        { do: 'freeze-at', tab, operation: 5 + by.below(8), ...(by.happens(0.7) && { when: 'after' as const }) },
        { ...submit, tab } as Step,
        { do: 'pass', ms: by.pick([20_000, 60_000, longMs]) },
        { do: 'thaw', tab },
      ],
    ],
  ])()
}

function namesBy(by: Chance, { dialect }: Setting): readonly [IntentName, ...IntentName[]] {
  const kinds = by.weighted<readonly [IntentName, ...IntentName[]]>([
    [6, ['order-1']],
    [3, ['order-1', 'order-2']],
    [1, ['till-1', 'till-2', 'till-3']],
    [dialect === 'samekey' ? 1 : 0, ['doc-1', 'doc-2']],
  ])
  return kinds
}

/** From a blink to longer than the server remembers. */
function passBy(by: Chance): number {
  const [least, most] = by.weighted<readonly [number, number]>([
    [4, [1, 100]],
    [5, [100, 5000]],
    [5, [5000, 60_000]],
    [2, [60_000, 600_000]],
    [1, [times.retention - 240_000, times.retention + 300_000]],
  ])
  return least + by.below(most - least)
}

function submitBy(by: Chance, tabs: number, names: readonly [IntentName, ...IntentName[]]): Step {
  return {
    do: 'submit',
    tab: by.below(tabs),
    intent: by.pick(names),
    content: by.weighted<Content>([
      [12, 'tea'],
      [3, 'coffee'],
      [2, 'sold-out'],
      [1, 'nonsense'],
      [1, 'broken'],
    ]),
    ...(by.happens(0.15) && { twice: true }),
    ...(by.happens(0.1) && { again: true }),
    ...(by.happens(0.07) && { sendBeforeMs: passBy(by) }),
  }
}

function stepBy(by: Chance, setting: Setting, tabs: number, names: readonly [IntentName, ...IntentName[]]): Step {
  return by.weighted<() => Step>([
    [5, () => submitBy(by, tabs, names)],
    [10, () => faultBy(by, setting, tabs)],
    [4, () => lifeBy(by, tabs)],
    [5, () => personBy(by, tabs, names)],
    [2, () => identityBy(by, setting, tabs)],
    [1.5, () => clockBy(by, setting)],
    [0.4, () => diskBy(by, names)],
  ])()
}

function faultBy(by: Chance, setting: Setting, tabs: number): Step {
  return by.weighted<() => Step>([
    [8, () => ({ do: 'network', fates: fatesBy(by, setting) })],
    [3, () => ({ do: 'server', fault: serverFaultBy(by, setting) })],
    [setting.dialect === 'samekey' ? 1 : 0, () => ({ do: 'worker', fault: by.pick(workerFaults) })],
    [3, () => ({ do: 'store', tab: by.below(tabs), fault: by.pick(storeFaults), operation: by.below(10) })],
    [3, () => killAtBy(by, tabs)],
    [2, () => freezeAtBy(by, tabs)],
    [0.5, () => ({ do: 'partition' })],
    [0.5, () => ({ do: 'heal' })],
    [0.5, () => ({ do: 'hint', online: by.happens(0.5) })],
  ])()
}

function freezeAtBy(by: Chance, tabs: number): Step {
  const step = { do: 'freeze-at', tab: by.below(tabs), operation: 1 + by.below(10) } as const
  return by.happens(0.5) ? { ...step, when: 'after' } : step
}

function killAtBy(by: Chance, tabs: number): Step {
  return { do: 'kill-at', tab: by.below(tabs), operation: 1 + by.below(12), when: by.pick(['before', 'after']) }
}

function fatesBy(by: Chance, setting: Setting): Fate[] {
  const fate = (): Fate =>
    by.weighted<Fate>([
      [4, 'answer-lost'],
      [3, 'request-lost'],
      [2, 'request-late'],
      [2, 'refused'],
      [1, 'answer-cut'],
      [1, 'answer-late'],
      [1, 'black-hole'],
      [1, 'black-hole-after'],
      [setting.repeats ? 4 : 0, 'twice'],
      [1, 'portal'],
      // Where a dialect has no marker, a foreign answer that looks right is believed (section 18).
      [setting.dialect === 'samekey' ? 1 : 0, 'foreign-json'],
      [1, 'proxy-502'],
      [1, 'proxy-504'],
      [1, 'gateway-401'],
      [1, 'gateway-403'],
      [1, 'gateway-404'],
      [0.5, 'gateway-413'],
      [1, 'gateway-429'],
      [0.5, 'gateway-500'],
      [1, 'gateway-503'],
      [1, 'redirect-away'],
      [0.5, 'redirect-here'],
      // Where the server does not de-duplicate, following doubles by itself.
      [setting.dialect === 'none' ? 0 : 0.7, 'redirect-after'],
      // Only where the transport's word is not taken for a proof.
      [setting.provesNonDelivery && !setting.repeats ? 0 : 0.7, 'refused-after'],
      [0.5, 'login-page'],
    ])
  return Array.from({ length: 1 + by.below(by.happens(0.3) ? 4 : 2) }, fate)
}

function serverFaultBy(by: Chance, { dialect }: Setting): ServerFault {
  return by.weighted<ServerFault>([
    [2, 'crash-before-commit'],
    [3, 'crash-after-commit'],
    [2, 'slow'],
    [1, 'throws'],
    [1, 'unavailable'],
    [dialect === 'samekey' ? 4 : 0, 'accepts'],
  ])
}

const workerFaults: readonly [WorkerFault, ...WorkerFault[]] = [
  'dies',
  'dies-after-step',
  'sleeps',
  'fails',
  'refuses',
  'leaves-unknown',
]

const storeFaults: readonly [StoreFault, ...StoreFault[]] = [
  'fails',
  'full',
  'unsure-written',
  'unsure-lost',
  'unsure-late',
  'slow',
  'gone',
]

function lifeBy(by: Chance, tabs: number): Step {
  const tab = by.below(tabs)
  return by.weighted<Step>([
    [5, { do: 'open', tab }],
    [3, { do: 'kill', tab }],
    [1, { do: 'close', tab }],
    [2, { do: 'freeze', tab }],
    [4, { do: 'thaw', tab }],
    [1, { do: 'throttle', tab }],
    [1, { do: 'show', tab }],
    [1, { do: 'abort', tab }],
  ])
}

function personBy(by: Chance, tabs: number, names: readonly [IntentName, ...IntentName[]]): Step {
  const tab = by.below(tabs)
  const intent = by.pick(names)
  return by.weighted<Step>([
    [5, { do: 'cancel', tab, intent }],
    [3, { do: 'retry', tab, intent }],
    [3, { do: 'check', tab, intent }],
    [3, { do: 'resolve', tab, intent }],
    [1, { do: 'acknowledge', tab, intent }],
    [1, { do: 'forget', tab, intent }],
    [1, { do: 'skip', tab, intent }],
    [1, { do: 'resume', tab }],
    [1, { do: 'list', tab }],
    [2, { do: 'abandon', tab, intent }],
    [1, { do: 'abandon-by-force', tab, intent }],
  ])
}

function identityBy(by: Chance, { identity }: Setting, tabs: number): Step {
  const user = by.pick<User>(['alice', 'bob'])
  return by.weighted<Step>([
    [3, { do: 'sign-in', user }],
    [identity === 'cookie' ? 3 : 1, { do: 'sign-in-unseen', user, tab: by.below(tabs) }],
    [1, { do: 'sign-out' }],
    [2, { do: 'expire-token', user }],
    [3, { do: 'renew-token', user }],
    [2, { do: 'revoke', user }],
    [2, { do: 'allow', user }],
  ])
}

function clockBy(by: Chance, { keys }: Setting): Step {
  const far = passBy(by)
  return by.weighted<Step>([
    [2, { do: 'sleep', ms: far }],
    [1, { do: 'jump', ms: far }],
    // What counts from a time that the app recovers by itself cannot know of a clock that was set back (P11).
    [keys === 'derived' ? 0 : 1, { do: 'jump', ms: -far }],
    [0.3, { do: 'sleep', ms: 8 * 24 * 3600_000 }],
    [0.2, { do: 'jump', ms: 4 * 365 * 24 * 3600_000 }],
  ])
}

function diskBy(by: Chance, names: readonly [IntentName, ...IntentName[]]): Step {
  return by.weighted<Step>([
    [2, { do: 'lose-storage' }],
    [1, { do: 'damage', intent: by.pick(names) }],
    [1, { do: 'renew-format', intent: by.pick(names) }],
  ])
}
