// Shared by the crash tests: servers on one database, requests to them over HTTP, and queries of their database.
import { Client as DatabaseClient } from 'pg';
import { pino } from 'pino';
import { setTimeout as pause } from 'node:timers/promises';
import { expect, onTestFinished } from 'vitest';
import { type StartOptions, startServer } from '../../src/app/start.ts';
import { users } from '../../src/auth/user.ts';
import { startControlled } from '../../src/testing/routes.ts';
import { checkSentDeliveries } from '../kit/check-deliveries.js';
import { noteRecord, noteSecret } from '../kit/leaks.ts';
import { hashCheaply } from '../kit/password.ts';
import { type Database, createDatabase, patientAddress, startPostgres } from '../kit/postgres.ts';
import { startProcess } from '../kit/process.ts';
import { openPeerStore } from './store-kit.ts';

const password = 'a password for the crash tests';

export type Answer = { status: number; headers: Headers; body: Record<string, unknown> };
export type Client = ReturnType<typeof createClient>;

/** A server, in a process of its own or in this one. */
export type Steward = Client & {
  /** Ends it as an operator does, and checks that it ends without an error. */
  readonly stop: () => Promise<void>;
  /** The errors in its log. */
  readonly loggedErrors: () => string[];
};
export type StewardProcess = Awaited<ReturnType<typeof startSteward>>;
export type InProcessSteward = Awaited<ReturnType<typeof startInProcess>>;

const variablesOf = (storeUrl: string, env: Record<string, string>) => ({
  STORE_URL: storeUrl,
  ADMIN_PASSWORD: password,
  SECRET_KEY: 'k'.repeat(32),
  LOG_LEVEL: 'warn',
  WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8',
  WEBHOOK_HISTORY: '10000',
  ...env,
});

/**
 * Creates all tables, and an administrator whose password is cheap to check. Without this, every server and every
 * sign-in hashes it.
 */
async function seed(url: string): Promise<void> {
  const store = await openPeerStore(url);
  await store.update((transaction) =>
    transaction.put(users, {
      username: 'admin',
      role: 'administrator',
      passwordHash: hashCheaply(password),
      createdAt: Date.now(),
      lastSignIn: null,
      subject: null,
    }),
  );
  await store.close();
}

export async function createSeededDatabase(): Promise<Database> {
  const database = await createDatabase();
  await seed(database.url);
  return database;
}

/** Starts a separate PostgreSQL, for tests that kill it. */
export async function startSeededPostgres() {
  const postgres = await startPostgres();
  const url = patientAddress(postgres.url);
  await seed(url);
  return { ...postgres, url };
}

const catalogRequest = `<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body>
  <GetServiceDescriptions xmlns="http://www.example.com/schemas/Product/10.0"/></s:Body></s:Envelope>`;

/** Requests throw when the server has ended, as for any client. */
function createClient(address: string, findEnd: () => string | undefined = () => undefined) {
  async function ask(path: string, init: RequestInit = {}): Promise<Answer> {
    const response = await fetch(address + path, init).catch((error: unknown) => {
      const end = findEnd();
      throw end === undefined ? error : new Error(end);
    });
    const text = await response.text();
    const isJson = response.headers.get('content-type')?.startsWith('application/json') === true;
    const body = (isJson ? JSON.parse(text) : { text }) as Record<string, unknown>;
    return { status: response.status, headers: response.headers, body };
  }
  const by = (token: string) => ({ authorization: `Bearer ${token}` });
  const form = (fields: Record<string, string | Blob>) => {
    if (Object.values(fields).every((value) => typeof value === 'string'))
      return new URLSearchParams(fields as Record<string, string>);
    const parts = new FormData();
    for (const [name, value] of Object.entries(fields))
      if (typeof value === 'string') parts.append(name, value);
      else parts.append(name, value, 'file.json');
    return parts;
  };
  return {
    ask,
    get: (path: string, token: string) => ask(path, { headers: by(token) }),
    post: (
      path: string,
      fields: Record<string, string | Blob>,
      token: string,
      withinMs = 60_000,
      headers: Record<string, string> = {},
    ) => {
      const signal = AbortSignal.timeout(withinMs);
      return ask(path, { method: 'POST', headers: { ...by(token), ...headers }, body: form(fields), signal });
    },
    /** 200 if it is ready. */
    readiness: async () => (await ask('/ready')).status,
    readCatalog: () =>
      ask('/services', { method: 'POST', headers: { 'content-type': 'text/xml' }, body: catalogRequest }),
    async signIn(): Promise<string> {
      const body = new URLSearchParams({ username: 'admin', password });
      const answer = await ask('/tokens/generateToken', { method: 'POST', body });
      const token = answer.body.token as string;
      noteSecret(token);
      return token;
    },
  };
}

const findErrors = (log: string) =>
  log.split('\n').filter((line) => /"level":[56]0|unhandled|uncaught/i.test(line));

/** Shorter than usual, because the tests wait for it, and long enough for a process that gets little processor time. */
const leaseMs = 4_000;

/** Starts a process, for tests that kill or suspend it. Resolves when it listens. */
export async function startSteward(storeUrl: string, env: Record<string, string> = {}) {
  const started = startProcess({ ...variablesOf(storeUrl, env), TEST_LEASE_MS: String(leaseMs) });
  const { child, output, exited } = started;
  const findEnd = () =>
    child.exitCode === null ? undefined : `the process has ended by itself: ${output.out.slice(-2_000)}`;
  return {
    ...started,
    ...createClient(await started.listening, findEnd),
    async stop(): Promise<void> {
      child.kill('SIGTERM');
      expect(await exited).toBe(0);
    },
    loggedErrors: () => findErrors(output.out),
  };
}

export type InProcessOptions = Pick<StartOptions, 'builtFiles' | 'leaseMs'>;

/** Starts a whole server in this process, with the connections, the clock and the HTTP client of a real one. */
export async function startInProcess(
  storeUrl: string,
  env: Record<string, string> = {},
  { builtFiles = new URL('../../dist/', import.meta.url), ...options }: InProcessOptions = {},
) {
  let log = '';
  const write = (line: string) => {
    log += line;
    noteRecord(line);
  };
  const variables: Record<string, string> = { PORT: '0', ...variablesOf(storeUrl, env) };
  noteSecret(variables.ADMIN_PASSWORD, variables.SECRET_KEY, variables.STORE_URL);
  const server = await startServer({
    ...options,
    builtFiles,
    env: variables,
    createLogger: ({ LOG_LEVEL: level }) => pino({ level }, { write }),
    startControlled,
  });
  const stopChecking = checkSentDeliveries();
  let closed: Promise<void> | undefined;
  const stop = () => (closed ??= server.close().finally(stopChecking));
  onTestFinished(stop);
  return { ...createClient(server.address), stop, log: () => log, loggedErrors: () => findErrors(log) };
}

/** Signs in as administrator and waits until every process accepts the token. */
export async function signInEverywhere(stewards: readonly Client[]): Promise<string> {
  let token = '';
  // A process with the default limits may refuse while the machine is busy.
  const signIn = async () => (token = (await stewards[0]?.signIn()) ?? '');
  await expect.poll(signIn, { timeout: 60_000 }).not.toBe('');
  for (const steward of stewards)
    await expect.poll(async () => (await steward.get('/admin', token)).status, { timeout: 60_000 }).toBe(200);
  return token;
}

/** Queries the database directly. */
export async function connect(url: string) {
  const client = new DatabaseClient({ connectionString: url });
  client.on('error', () => undefined);
  await client.connect();
  onTestFinished(() => client.end());
  return async <R extends object>(statement: string, values: unknown[] = []) =>
    (await client.query<R>(statement, values)).rows;
}

/**
 * Resolves when a process has renewed its lease three times. Every pause of the same process is over then that has
 * begun before, and takes no longer than two fifths of its lease.
 */
export async function renewedThrice(query: Awaited<ReturnType<typeof connect>>): Promise<void> {
  const lease = () => query('select alive_until::text from processes');
  for (let renewals = 0; renewals < 3; renewals += 1)
    await expect.poll(lease, { timeout: 60_000, interval: 20 }).not.toEqual(await lease());
}

export { pause };
