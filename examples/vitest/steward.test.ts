// Tests against Steward in TypeScript, with Vitest: one server for the file, and a reset before each test.
import { type NewFailureRule, type Steward, startSteward } from 'steward';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';

let steward: Steward;
beforeAll(async () => {
  steward = await startSteward({ env: { UPGRADE_STEP_MS: '0' } });
});
beforeEach(() => steward.control.reset());
afterAll(() => steward.stop());

/** Stands for the program under test: calls the admin API and returns the answer. */
async function call<T>(path: string, fields: Record<string, string> = {}): Promise<T> {
  const body = new URLSearchParams({ token: steward.adminToken, f: 'json', ...fields });
  const response = await fetch(`${steward.url}/admin/${path}`, { method: 'POST', body });
  return (await response.json()) as T;
}

type Folder = { folders: string[]; services: { serviceName: string; type: string }[] };

it('publishes a service', async () => {
  expect(await call('services/createFolder', { folderName: 'Harbour' })).toEqual({ status: 'success' });
  expect((await call<Folder>('services')).folders).toContain('Harbour');
});

it('starts from the same state', async () => {
  expect((await call<Folder>('services')).folders).not.toContain('Harbour');
});

it('sees a token expire after two hours', async () => {
  const body = new URLSearchParams({ username: 'admin', password: steward.adminPassword ?? '' });
  const signedIn = await fetch(`${steward.url}/tokens/generateToken`, { method: 'POST', body });
  const { token } = (await signedIn.json()) as { token: string };
  expect(await call('mode', { token })).toMatchObject({ isReadOnly: false });
  await steward.control.advanceClock(120 * 60_000);
  expect(await call('mode', { token })).toMatchObject({ error: { code: 498 } });
});

it('survives an overloaded server', async () => {
  // A wrong name or error kind is an error of the compiler.
  const overloaded: NewFailureRule = {
    match: { route: '/admin/services' },
    respond: { error: 'unavailable' },
    times: 1,
  };
  await steward.control.addFailure(overloaded);
  expect(await call('services')).toMatchObject({ error: { code: 503 } });
  expect(await call('services')).toHaveProperty('folders');
  const { requests } = await steward.control.requests({ route: '/admin/services' });
  expect(requests.map(({ status }) => status)).toEqual([200, 503]);
});
