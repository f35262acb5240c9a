// The installed version of a store that several processes share: it is decided once, and kept.
import { expect, it } from 'vitest';
import { createFakeRuntime } from '../kit/runtime.ts';
import { startServer } from '../kit/server.ts';
import { createTestStore } from '../kit/store.ts';

it('is decided by one of two processes that decide at the same moment', async () => {
  const store = await createTestStore();
  const shared = await store.reopen();
  const start = (installed: string, on = store) =>
    startServer({
      present: null,
      store: on,
      runtime: createFakeRuntime(),
      env: { INSTALLED_VERSION: installed },
    });
  const [one, other] = await Promise.all([start('10.9.1.1250'), start('11.0.0.2632', shared)]);
  const versionOf = async ({ get, token }: typeof one) =>
    (await get(`/admin?token=${token('administrator')}`)).json<{ fullVersion: string }>().fullVersion;
  const version = await versionOf(one);
  expect(['10.9.1.1250', '11.0.0.2632']).toContain(version);
  await shared.refresh();
  expect(await versionOf(other)).toBe(version);
  const operation = 'system%2Fupgrades%2Fadopt';
  const audit = await one.get(
    `/admin/system/audit?operation=${operation}&token=${one.token('administrator')}`,
  );
  expect(audit.json<{ total: number }>().total).toBe(1);
  await Promise.all([one.close(), other.close()]);
});

it('is kept by the next start, also if INSTALLED_VERSION names no version any more', async () => {
  const store = await createTestStore();
  const first = await startServer({ present: null, store, env: { INSTALLED_VERSION: '11.0.0.2650' } });
  await first.close();
  const next = await startServer({
    present: null,
    store: await store.reopen(),
    env: { INSTALLED_VERSION: 'rel_gone' },
  });
  const admin = await next.get(`/admin?token=${next.token('administrator')}`);
  expect(admin.json()).toMatchObject({ fullVersion: '11.0.0.2650' });
});
