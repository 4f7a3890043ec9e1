/**
 * Calls what only listens: whatever comes of it, nothing else changes (P28). Also for functions that promise nothing and
 * return a promise all the same, whose rejection would end the process.
 */
export function quietly(listen: () => unknown): void {
  try {
    Promise.resolve(listen()).catch(() => {})
  } catch {
    // As above.
  }
}
