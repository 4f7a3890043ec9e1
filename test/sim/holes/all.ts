/** Every hole that a schedule of the simulator can reach. */
import type { Hole } from './hole.ts'
import { ofClients } from './of-clients.ts'
import { ofContents } from './of-contents.ts'
import { ofIdentity } from './of-identity.ts'
import { ofLanes } from './of-lanes.ts'
import { ofNetworks } from './of-networks.ts'
import { ofTabs } from './of-tabs.ts'
import { ofTime } from './of-time.ts'
import { ofVoids } from './of-voids.ts'
import { ofWork } from './of-work.ts'

export const holes: readonly Hole[] = [
  ...ofClients,
  ...ofContents,
  ...ofIdentity,
  ...ofLanes,
  ...ofNetworks,
  ...ofTabs,
  ...ofTime,
  ...ofVoids,
  ...ofWork,
].sort((a, b) => numberOf(a) - numberOf(b))

function numberOf({ hole }: Hole): number {
  return Number(hole.slice(1))
}
