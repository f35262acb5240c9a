// Tests against Steward with Jest: one server for the file, and a reset before each test. Jest loads ES modules only
// with a flag of Node: NODE_OPTIONS=--experimental-vm-modules npx jest
// Jest 29 finds this file with the option --testMatch '**/*.test.mjs'.
import { afterAll, beforeAll, beforeEach, expect, it } from '@jest/globals';
import { startSteward } from 'steward';

/** @type {import('steward').Steward} */
let steward;
beforeAll(async () => {
  steward = await startSteward({ env: { UPGRADE_STEP_MS: '0' } });
});
beforeEach(() => steward.control.reset());
afterAll(() => steward.stop());

/** Stands for the program under test: calls the admin API and returns the answer. */
async function call(path, fields = {}) {
  const body = new URLSearchParams({ token: steward.adminToken, f: 'json', ...fields });
  const response = await fetch(`${steward.url}/admin/${path}`, { method: 'POST', body });
  return response.json();
}

it('publishes a folder', async () => {
  expect(await call('services/createFolder', { folderName: 'Harbour' })).toEqual({ status: 'success' });
  expect((await call('services')).folders).toContain('Harbour');
});

it('starts from the same state', async () => {
  expect((await call('services')).folders).not.toContain('Harbour');
});

it('survives an overloaded server', async () => {
  await steward.control.addFailure({
    match: { route: '/admin/services' },
    respond: { error: 'unavailable' },
    times: 1,
  });
  expect(await call('services')).toMatchObject({ error: { code: 503 } });
  expect(await call('services')).toHaveProperty('folders');
});
