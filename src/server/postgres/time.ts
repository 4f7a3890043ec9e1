/** Time in SQL: the database's own, which all servers share, or that of a test. */

/** Writes a statement in which `$NOW` stands for the time. */
export type Timed = (sql: string, values: unknown[]) => [sql: string, values: unknown[]]

/** @param now epoch ms; undefined for the database's clock. */
export function timedBy(now: (() => number) | undefined): Timed {
  return (sql, values) => {
    if (!sql.includes('$NOW')) return [sql, values]
    if (now === undefined) return [sql.replaceAll('$NOW', 'clock_timestamp()'), values]
    const parameter = `$${values.length + 1}::timestamptz`
    return [sql.replaceAll('$NOW', () => parameter), [...values, new Date(now()).toISOString()]]
  }
}

/** A timestamp as epoch ms, a number that `pg` hands over as one. */
export function epochMs(timestamp: string): string {
  return `floor(extract(epoch from ${timestamp}) * 1000)::float8`
}

/** Epoch ms, or null, as a timestamp: the value for a `$n::timestamptz`. */
export function timestampOf(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString()
}
