// Tests against Steward with node:test: one server for the file, and a reset before each test.
// Run them with `node --test`.
import assert from 'node:assert/strict';
import { after, before, beforeEach, it } from 'node:test';
import { startSteward } from 'steward';

/** @type {import('steward').Steward} */
let steward;
before(async () => {
  steward = await startSteward({ env: { UPGRADE_STEP_MS: '0' } });
});
beforeEach(() => steward.control.reset());
after(() => steward.stop());

/** Stands for the program under test: calls the admin API and returns the answer. */
async function call(path, fields = {}) {
  const body = new URLSearchParams({ token: steward.adminToken, f: 'json', ...fields });
  const response = await fetch(`${steward.url}/admin/${path}`, { method: 'POST', body });
  return response.json();
}

it('publishes a folder', async () => {
  assert.deepEqual(await call('services/createFolder', { folderName: 'Harbour' }), { status: 'success' });
  assert.ok((await call('services')).folders.includes('Harbour'));
});

it('starts from the same state', async () => {
  assert.ok(!(await call('services')).folders.includes('Harbour'));
});

it('survives an overloaded server', async () => {
  await steward.control.addFailure({
    match: { route: '/admin/services' },
    respond: { error: 'unavailable' },
    times: 1,
  });
  assert.equal((await call('services')).error.code, 503);
  assert.ok('folders' in (await call('services')));
});
