// What the examples in README.md, docs/ and the doc comments take for granted: the reader's own application.
// scripts/check-docs.ts compiles every example against it.

interface Order {
  id: string
  total: string
}

declare const cart: { id: string; createdAt: number; lines: { sku: string; quantity: number }[] }
declare const invoice: { id: string; amount: string; currency: string }
declare const session: { userId: string; token(): Promise<string> }
declare const api: import('samekey').Client
declare function showReceipt(order: Order | unknown): void
declare function showMessage(text: string): void

/** An SDK that takes a `fetch` and passes headers on. */
declare class ShopSdk {
  constructor(options: { fetch: typeof fetch })
  readonly orders: { create(order: unknown, options: { headers: Record<string, string> }): Promise<Order> }
}

declare function sessionOf(request: Request): Promise<{ tenant: string; principal: string } | null>
declare function linesOf(body: import('samekey/server').RequestBody): string
