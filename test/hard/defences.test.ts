// Attacks and abuses that the server must withstand.
import { expect, it } from 'vitest';
import { perTest } from '../kit/cleanup.ts';
import { startServer } from '../kit/server.ts';
import { patchOf } from '../kit/versions.ts';

const server = perTest(startServer);

const administrator = () => server.token('administrator');

it('a form may have 1,000 fields and no more', async () => {
  const form = (count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, index) => [`f${index}`, '1']));
  expect((await server.post('/admin/mode', { ...form(999), token: administrator() })).statusCode).toBe(200);
  expect((await server.post('/admin/mode', form(1002))).statusCode).toBe(413);
});

it.each(['%00', '%01', 'a%00b', '%EF%BF%BE'])('an address with %s in it is not found', async (id) => {
  const path = `/admin/services/webhooks/${id}/deliveries/${id}?token=${administrator()}`;
  expect((await server.get(path)).statusCode).toBe(404);
});

it('JSON that is nested too deeply is refused, also in values that are not used', async () => {
  const nested = `{"userInputs":[{"id":${'['.repeat(100_000)}${']'.repeat(100_000)}}]}`;
  const fields = {
    token: administrator(),
    versionManifest: '{"id":"pat_17022022_1250"}',
    upgradeSettings: nested,
  };
  const response = await server.post('/admin/system/upgrades/plan', fields);
  expect(response.statusCode).toBe(400);
  expect(response.body).toContain('upgradeSettings: must not be nested more than 64 levels deep.');
});

it('a manifest with control characters in any text is refused', async () => {
  const version = {
    ...patchOf('p', '1'),
    containers: [{ name: 'A\u0000B', image: 'a:1' }],
    notes: { 'k\u0001': 'fine', lone: '\ud800' },
  };
  const parts = { manifestFile: { name: 'm.json', content: JSON.stringify([version]) } };
  const response = await server.postParts('/admin/system/upgrades/importManifest', parts, administrator());
  expect(response.json<{ error: { details: string[] } }>().error.details).toEqual([
    'manifestFile: [0].containers[0].name: must not have control characters.',
    'manifestFile: [0].notes: must not have control characters.',
    'manifestFile: [0].notes.lone: must not have control characters.',
  ]);
});

it('a page of another site cannot sign a user out', async () => {
  const foreign = { 'sec-fetch-site': 'cross-site' };
  for (const [f, status] of [
    ['html', 403],
    ['json', 200],
  ] as const) {
    const response = await server.post('/tokens/revokeToken', { token: 'x', f }, foreign);
    expect(response.statusCode).toBe(status);
    expect(response.headers['set-cookie']).toBeUndefined();
  }
});

it.each(['/services?wsdl', '/metrics', '/health', '/nowhere', '/admin'])(
  'browsers must not guess the content type of %s',
  async (path) => {
    expect((await server.get(path)).headers['x-content-type-options']).toBe('nosniff');
  },
);
