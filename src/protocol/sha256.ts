import { sha256 } from '@noble/hashes/sha2.js'
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js'

/**
 * SHA-256 in lower-case hexadecimal (64 characters). In plain script, because WebCrypto is missing on pages served
 * over plain http and answers only later, and a digest is needed within the submit.
 *
 * @param data bytes, or a text that counts as its UTF-8 bytes. A lone surrogate counts as U+FFFD: refuse it before.
 */
export function sha256Hex(data: Uint8Array | string): string {
  return bytesToHex(sha256(typeof data === 'string' ? utf8ToBytes(data) : data))
}
