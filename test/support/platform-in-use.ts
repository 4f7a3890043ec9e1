/** The platform that `systemPlatform` gives where a test file replaces it: a world's, so that time stands still. */
import type { Platform } from '../../src/ports.ts'

let inUse: Platform | null = null

export function usePlatform(platform: Platform): void {
  inUse = platform
}

export function platformInUse(): Platform {
  if (inUse === null) throw new Error('usePlatform() comes first')
  return inUse
}
