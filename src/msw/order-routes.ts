/** The orders as resources, for clients that look a business identity up (P43) or follow a 303. */
import type { MockOrder } from './operations.ts'

const orderPath = /^\/orders(?:\/(\d+))?$/

/** True for a request that {@link orderRoutes} may answer. */
export function isOrderRoute({ method }: Pick<Request, 'method'>, path: string): boolean {
  return method === 'GET' && orderPath.test(path)
}

/** All orders at `/orders`, one at `/orders/{id}`; null for anything else. */
export function orderRoutes(request: Request, path: string, orders: readonly MockOrder[]): Response | null {
  if (!isOrderRoute(request, path)) return null
  const id = orderPath.exec(path)?.[1]
  if (id === undefined) return Response.json(orders)
  const order = orders.find((each) => each.id === Number(id))
  return order === undefined ? null : Response.json(order)
}
