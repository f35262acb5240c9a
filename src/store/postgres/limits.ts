// The time limits of connections to PostgreSQL. Parameters of the address precede the defaults.

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

type Limit = keyof typeof defaults;

export type Limits = Readonly<Record<Limit, number>>;

/** The limits that the server enforces, as statements: PgBouncer refuses them as parameters of a connection. */
export function setTimeouts(limits: Limits): string[] {
  const { statement_timeout, lock_timeout, idle_in_transaction_session_timeout } = limits;
  const timeouts = { statement_timeout, lock_timeout, idle_in_transaction_session_timeout };
  return Object.entries(timeouts).map(([name, ms]) => `set ${name} = ${ms}`);
}

/** All limits off. */
export const noLimits: Limits = {
  connect_timeout: 0,
  query_timeout: 0,
  statement_timeout: 0,
  lock_timeout: 0,
  idle_in_transaction_session_timeout: 0,
};

/** Takes the limits out of the address. */
export function readLimits(address: string): { url: string; limits: Limits } {
  const url = new URL(address);
  const read = (name: Limit): number => {
    const text = url.searchParams.get(name);
    if (text === null) return defaults[name];
    url.searchParams.delete(name);
    // A longer time would end a timer of Node at once.
    const most = name === 'connect_timeout' ? 2_147_483 : 2_147_483_647;
    if (/^[0-9]{1,10}$/.test(text) && Number(text) <= most) return Number(text);
    const unit = name === 'connect_timeout' ? 'seconds' : 'milliseconds';
    throw new Error(`${name} in STORE_URL must be an integer of ${unit} from 0 (no limit) to ${most}.`);
  };
  const limits = {
    connect_timeout: read('connect_timeout'),
    query_timeout: read('query_timeout'),
    statement_timeout: read('statement_timeout'),
    lock_timeout: read('lock_timeout'),
    idle_in_transaction_session_timeout: read('idle_in_transaction_session_timeout'),
  };
  return { url: url.href, limits };
}
