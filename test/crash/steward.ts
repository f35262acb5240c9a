// Shared by the crash tests: server processes on one database, requests to them over HTTP, and repeatable random numbers.
import { setTimeout as pause } from 'node:timers/promises';
import { Client } from 'pg';
import { expect, onTestFailed, onTestFinished } from 'vitest';
import { noteSecret } from '../kit/leaks.ts';
import { type ProcessOptions, startProcess } from '../kit/process.ts';

const password = 'a password for the crash tests';

export type Answer = { status: number; headers: Headers; body: Record<string, unknown> };
export type Steward = Awaited<ReturnType<typeof startSteward>>;

/** Starts a process without waiting for it. */
export function launchSteward(
  storeUrl: string,
  env: Record<string, string> = {},
  options: ProcessOptions = {},
) {
  const defaults = {
    STORE_URL: storeUrl,
    ADMIN_PASSWORD: password,
    SECRET_KEY: 'k'.repeat(32),
    LOG_LEVEL: 'warn',
    WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8',
    WEBHOOK_HISTORY: '10000',
  };
  return startProcess({ ...defaults, ...env }, {}, options);
}

/** Resolves when the process listens. Requests throw when the process has ended, as for any client. */
export async function startSteward(
  storeUrl: string,
  env: Record<string, string> = {},
  options: ProcessOptions = {},
) {
  const started = launchSteward(storeUrl, env, options);
  const address = await started.listening;

  async function ask(path: string, init: RequestInit = {}): Promise<Answer> {
    const response = await fetch(address + path, init).catch((error: unknown) => {
      const { child, output } = started;
      throw child.exitCode === null
        ? error
        : new Error(`the process has ended by itself: ${output.out.slice(-2_000)}`);
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
    ...started,
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
    /** Ends the process as an operator does, and checks that it ends without an error. */
    async stop(): Promise<void> {
      started.child.kill('SIGTERM');
      expect(await started.exited).toBe(0);
    },
    async signIn(): Promise<string> {
      const body = new URLSearchParams({ username: 'admin', password });
      const answer = await ask('/tokens/generateToken', { method: 'POST', body });
      const token = answer.body.token as string;
      noteSecret(token);
      return token;
    },
    /** The errors in its log. */
    loggedErrors: () =>
      started.output.out.split('\n').filter((line) => /"level":[56]0|unhandled|uncaught/i.test(line)),
  };
}

/** Signs in as administrator and waits until every process accepts the token. */
export async function signInEverywhere(stewards: readonly Steward[]): Promise<string> {
  const token = (await stewards[0]?.signIn()) ?? '';
  for (const steward of stewards)
    await expect.poll(async () => (await steward.get('/admin', token)).status).toBe(200);
  return token;
}

/** Queries the database directly. */
export async function connect(url: string) {
  const client = new Client({ connectionString: url });
  client.on('error', () => undefined);
  await client.connect();
  onTestFinished(() => client.end());
  return async <R extends object>(statement: string, values: unknown[] = []) =>
    (await client.query<R>(statement, values)).rows;
}

/** Random numbers from 0 to 1 for a seed. A failing test prints its seed, so that the run can be repeated. */
export function createRandom(): () => number {
  const seed = Number(process.env.CRASH_SEED ?? Math.floor(Math.random() * 2 ** 32));
  onTestFailed(
    () => void process.stderr.write(`to repeat the random numbers of this test: CRASH_SEED=${seed}\n`),
  );
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

export { pause };
