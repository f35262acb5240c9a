// The number and the time limits of connections to PostgreSQL. Parameters of the address precede the defaults.

/**
 * By default, no request waits for the database longer than ten seconds, and a process that stops in a transaction
 * keeps others waiting for two at most. `connect_timeout` is in seconds, as in libpq, the others in milliseconds.
 */
const defaults = {
  connect_timeout: 2,
  query_timeout: 6_000,
  statement_timeout: 5_000,
  lock_timeout: 3_000,
  idle_in_transaction_session_timeout: 1_000,
};

export type Limits = typeof defaults;

const names = Object.keys(defaults) as (keyof Limits)[];

const limitsOf = (read: (name: keyof Limits) => number) =>
  Object.fromEntries(names.map((name) => [name, read(name)])) as Limits;

export const noLimits = limitsOf(() => 0);

/** The limits that the server enforces, as statements: PgBouncer refuses them as parameters of a connection. */
export function setTimeouts(limits: Limits): string[] {
  const ofServer = names.filter((name) => name !== 'connect_timeout' && name !== 'query_timeout');
  return ofServer.map((name) => `set ${name} = ${limits[name]}`);
}

const usualConnections = 10;

/** Takes the limits and the number of connections out of the address. */
export function readLimits(address: string): { url: string; limits: Limits; maxConnections: number } {
  const url = new URL(address);
  const take = (name: string, usual: number, least: number, most: number, allowed: string) => {
    const text = url.searchParams.get(name);
    if (text === null) return usual;
    url.searchParams.delete(name);
    if (/^[0-9]{1,10}$/.test(text) && Number(text) >= least && Number(text) <= most) return Number(text);
    throw new Error(`${name} in STORE_URL must be an integer ${allowed} to ${most}.`);
  };
  const limits = limitsOf((name) => {
    // A longer time would end a timer of Node at once.
    const [most, unit] =
      name === 'connect_timeout' ? [2_147_483, 'seconds'] : [2_147_483_647, 'milliseconds'];
    return take(name, defaults[name], 0, most, `of ${unit} from 0 (no limit)`);
  });
  const maxConnections = take('max_connections', usualConnections, 1, 100, 'from 1');
  return { url: url.href, limits, maxConnections };
}
