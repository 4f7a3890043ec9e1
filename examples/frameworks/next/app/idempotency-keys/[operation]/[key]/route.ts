/**
 * Shows: look-up and void by key in Next.js. The folders are named for Next alone: operation and key are read from the
 * URL, where they are still encoded.
 */
import type { Handler } from 'samekey/server'
import { keys } from '../../../../../orders.ts'

export const GET: Handler = keys
export const DELETE: Handler = keys
export const OPTIONS: Handler = keys
// Next would refuse these with a bare 405; the kit says what is allowed.
export const POST: Handler = keys
export const PUT: Handler = keys
export const PATCH: Handler = keys
