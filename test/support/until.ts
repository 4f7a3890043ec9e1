/** Longest wait for something that has to come; a test that fails should say what it waited for. */
const PATIENCE_MS = 30_000

/** Looks again and again. For what tells nobody when it happens, such as a lock in a database. */
export async function until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  const end = Date.now() + PATIENCE_MS
  while (!(await holds())) {
    if (Date.now() > end) throw new Error(`It did not come to this: ${what}.`)
    await new Promise((resolve) => setTimeout(resolve, 4))
  }
}
