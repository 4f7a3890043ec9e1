/** Shows: where Next.js prepares the database. It calls this once, before the first request; never while it builds. */
import { open } from '../orders.ts'

export async function register(): Promise<void> {
  const close = await open()
  process.once('SIGTERM', () => void close())
}
