/** Defaults of a session, from each of the places that they can come from. */
import pg from 'pg'

export const origins = ['the connection', 'the role', 'the database', 'the server'] as const

export type Origin = (typeof origins)[number]

/** A pool, and how to make all as it was. */
export interface Defaulted {
  readonly pool: pg.Pool
  end(): Promise<void>
}

/**
 * A pool whose connections have this default.
 *
 * @param admin whose own connections do not take it over.
 * @param config of the pool.
 */
export async function poolWith(
  admin: pg.Pool,
  config: pg.PoolConfig,
  origin: Origin,
  [setting, value]: readonly [setting: string, value: string],
): Promise<Defaulted> {
  const { options, undo } = await setDefault(admin, origin, setting, value)
  for (;;) {
    const pool = new pg.Pool({ ...config, ...options })
    // A test on a database without the default would prove nothing; and a server reads its settings a moment later.
    const { rows } = await pool.query<Record<string, string>>(`show ${setting}`)
    const end = async (): Promise<void> => {
      await pool.end()
      for (const statement of undo) await admin.query(statement)
    }
    if (rows[0]?.[setting] === value) return { pool, end }
    await pool.end()
  }
}

interface Default {
  readonly options: pg.PoolConfig
  readonly undo: readonly string[]
}

async function setDefault(admin: pg.Pool, origin: Origin, setting: string, value: string): Promise<Default> {
  switch (origin) {
    case 'the connection':
      return { options: { options: `-c ${setting}=${value.replaceAll(' ', '\\ ')}` }, undo: [] }
    case 'the role':
      return altered(admin, 'alter role postgres', setting, value)
    case 'the database':
      return altered(admin, 'alter database postgres', setting, value)
    case 'the server': {
      const reload = 'select pg_reload_conf()'
      const { options, undo } = await altered(admin, 'alter system', setting, value)
      await admin.query(reload)
      return { options, undo: [...undo, reload] }
    }
  }
}

async function altered(admin: pg.Pool, what: string, setting: string, value: string): Promise<Default> {
  await admin.query(`${what} set ${setting} = '${value}'`)
  return { options: {}, undo: [`${what} reset ${setting}`] }
}
