// What the examples in README.md, docs/ and the doc comments take for granted: the reader's own application.
// scripts/check-docs.ts compiles every example against it.

interface Order {
  id: string
  total: string
}

declare const cart: { id: string; createdAt: number; lines: { sku: string; quantity: number }[] }
declare const invoice: { id: string; amount: string; currency: string }
declare const session: { userId: string; token(): Promise<string> }
