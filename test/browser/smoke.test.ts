import type { Browser, Page } from 'puppeteer-core'
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { describeInChromium, launchChromium } from '../support/chromium.ts'
import { openShop, type Shop } from './shop.ts'

/** The page's program: what a web front end writes, with its doors open for the test. */
const client = `
  import { createClient } from 'samekey'
  import { samekey } from 'samekey/dialects'

  const api = createClient({
    baseUrl: location.origin,
    dialect: samekey,
    anonymous: true,
    keysUrl: '/keys',
    operations: { 'orders.create': { match: ({ method, url }) => method === 'POST' && url.pathname === '/orders' } },
    retry: { baseMs: 50 },
  })
  window.api = api
  window.buy = (cart) => api.post('orders', { intent: 'checkout:' + cart, json: { cart } })
`

interface ShopWindow {
  buy(cart: number): Promise<Response> & {
    json(): Promise<{ id: number }>
    stored: Promise<{ key: string }>
  }
  api: {
    ready: Promise<void>
    intents: { wait(id: string): Promise<{ state: string; key: string; response: Response }> }
  }
}
declare const window: ShopWindow

describeInChromium('a real browser', () => {
  let browser: Browser
  let shop: Shop
  let page: Page
  const errors: unknown[] = []

  beforeAll(async () => {
    browser = await launchChromium()
    shop = await openShop(client)
    page = await browser.newPage()
    page.on('pageerror', (error) => errors.push(error))
    await page.goto(shop.origin)
  })

  afterEach(() => expect(errors).toEqual([]))

  afterAll(async () => {
    await browser?.close()
    await shop?.close()
  })

  it('F5, B54: the server commits and the answer is lost: the same key goes again, one order', async () => {
    shop.loseAnswers(1)
    const order = await page.evaluate(() => window.buy(1).json())
    expect(order).toEqual({ id: 1 })
    expect(shop.orders).toHaveLength(1)
    const keys = shop.posts.map(({ key }) => key)
    expect(keys.length).toBeGreaterThanOrEqual(2)
    expect(new Set(keys).size).toBe(1)
  })

  it('P22, B22, F6: reloaded in mid-flight, the new page learns the outcome by itself, one order', async () => {
    const held = shop.holdAnswer()
    const key = await page.evaluate(async () => (await window.buy(2).stored).key)
    await held.committed
    await page.reload()
    held.release()
    const outcome = await page.evaluate(async () => {
      const end = await window.api.intents.wait('checkout:2')
      return { state: end.state, key: end.key, order: await end.response.json() }
    })
    expect(outcome).toEqual({ state: 'succeeded', key, order: { id: 2 } })
    expect(shop.orders.filter((order) => order.key === key)).toHaveLength(1)

    const posts = shop.posts.length
    expect(await page.evaluate(() => window.buy(2).json())).toEqual({ id: 2 })
    expect(shop.posts, 'B25: submitting it again asks nobody').toHaveLength(posts)
  })
})
