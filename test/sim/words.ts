/** A schedule for people: one line for each step. */
import { plainSetting, type Schedule, type Setting, type Step } from './schedule.ts'

/** The schedule as numbered lines. Settings that are as usual are not told. */
export function wordsOf({ setting, steps }: Schedule): string[] {
  return [
    `    ${settingWords(setting)}`,
    ...steps.map((step, at) => `${String(at + 1).padStart(3)} ${stepWords(step)}`),
  ]
}

function settingWords(setting: Setting): string {
  const unusual = Object.entries(setting).filter(([name, value]) => plainSetting[name as keyof Setting] !== value)
  return `setting: ${unusual.map(([name, value]) => `${name} ${String(value)}`).join(', ') || 'as usual'}`
}

/** One step in words. */
export function stepWords(step: Step): string {
  switch (step.do) {
    case 'pass':
      return `${duration(step.ms)} pass`
    case 'jump':
      return `the device's clock jumps ${step.ms < 0 ? 'back' : 'ahead'} by ${duration(Math.abs(step.ms))}`
    case 'sleep':
      return `the device sleeps for ${duration(step.ms)}`
    case 'kill-at':
      return `tab ${step.tab} will be killed ${step.when} its operation ${step.operation} from now`
    case 'freeze-at':
      return `tab ${step.tab} will freeze ${step.when ?? 'before'} its operation ${step.operation} from now`
    case 'submit': {
      const wishes = [
        step.twice === true && 'by a double click',
        step.again === true && 'once more',
        step.sendBeforeMs !== undefined && `to be sent within ${duration(step.sendBeforeMs)}`,
        step.amount !== undefined && `for ${step.amount}`,
      ].filter((wish) => wish !== false)
      return [`tab ${step.tab} submits ${step.intent}: ${step.content}`, ...wishes].join(', ')
    }
    case 'abort':
      return `tab ${step.tab} stops waiting`
    case 'resume':
      return `tab ${step.tab} resumes the lane`
    case 'list':
      return `tab ${step.tab} lists what is there`
    case 'sign-in':
      return `${step.user} signs in`
    case 'sign-in-unseen':
      return `${step.user} signs in through tab ${step.tab}, and the others do not notice`
    case 'sign-out':
      return 'the user signs out'
    case 'expire-token':
      return `${step.user}'s token expires`
    case 'renew-token':
      return `${step.user}'s token is renewed`
    case 'revoke':
      return `${step.user} may not order any more`
    case 'allow':
      return `${step.user} may order again`
    case 'network':
      return `next on the network: ${step.fates.join(', ')}`
    case 'partition':
      return 'the network is gone'
    case 'heal':
      return 'the network is back'
    case 'hint':
      return `the platform says ${step.online ? 'online' : 'offline'}`
    case 'store':
      return `tab ${step.tab}'s store: ${step.fault}, at its operation ${step.operation} from now`
    case 'lose-storage':
      return 'everything stored is lost'
    case 'damage':
      return `the record of ${step.intent} is damaged`
    case 'renew-format':
      return `a newer version rewrites the record of ${step.intent}`
    case 'server':
      return `the server's next execution: ${step.fault}`
    case 'worker':
      return `the worker's next work: ${step.fault}`
    case 'send-unnamed':
      return `tab ${step.tab} sends ${step.what === 'order' ? 'an order' : 'a password'} without a name`
    case 'choose-account':
      return `auth() chooses ${step.account === null ? 'no account any more' : `account ${step.account}`}`
    case 'deploy':
      return 'the server fingerprints by other rules from now on'
    case 'open':
      return `open tab ${step.tab}${step.client === undefined ? '' : `, the ${step.client}'s`}`
    case 'kill':
    case 'close':
    case 'freeze':
    case 'thaw':
    case 'throttle':
    case 'show':
      return `${step.do} tab ${step.tab}`
    default:
      return `tab ${step.tab}: ${step.do} ${step.intent}`
  }
}

function duration(ms: number): string {
  if (ms < 1000) return `${ms} ms`
  if (ms < 120_000) return `${ms / 1000} s`
  if (ms < 7_200_000) return `${Math.round(ms / 600) / 100} min`
  return `${Math.round(ms / 36_000) / 100} h`
}
