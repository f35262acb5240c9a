// A rollback through the API: its targets, its messages, and containers that it removes.
import { describe, expect, it } from 'vitest';
import {
  type Failure,
  type Message,
  type Status,
  admin,
  codesOf,
  patch1,
  patch2,
  upgrades,
  useJobs,
} from './jobs-kit.ts';
import { codesOfRollback } from './message-codes.ts';
import { patchOf } from '../kit/versions.ts';

const { server, start, upgrade, get, finish } = useJobs();

describe('a rollback', () => {
  it('goes back to an earlier patch or the release, with all messages in order', async () => {
    await start();
    await upgrade(patch2);
    await finish();
    const targets = await get<{ updates: { id: string }[] }>(`${upgrades}/checkRollback`);
    expect(targets.updates.map(({ id }) => id)).toEqual([patch1, 'rel_10092021_1234']);
    const back = (id: string) =>
      server.post(`${upgrades}/rollback`, { token: admin, versionManifest: JSON.stringify({ id }) });
    expect((await back(patch2)).statusCode).toBe(400);
    const { jobId } = (await back('rel_10092021_1234')).json<Status>();
    await server.runtime.advance(4500);
    expect((await server.post(`/admin/system/jobs/${jobId}/cancel`, { token: admin })).statusCode).toBe(409);
    const done = await finish();
    expect(codesOf(done)).toEqual(codesOfRollback(9));
    expect(done.status.messages.at(-4)?.message).toMatch(
      /^9 out of 9 deployments updated\. Elapsed: \d+ milliseconds \(approximately \d+ minutes\)\.$/,
    );
    expect(done.status.messages.at(-2)?.message).toMatch(
      /^Rollback completed in 0 hh, 0 min, \d+ sec, \d+ millisec\.$/,
    );
    expect(done.status.messages.at(-1)?.message).toBe(
      'The deployment was rolled back from 10.9.1.1260 to 10.9.1.1234.',
    );
    expect(await get('/admin')).toMatchObject({ fullVersion: '10.9.1.1234' });
    expect(await get(`${upgrades}/currentVersion`)).toMatchObject({ id: 'rel_10092021_1234', messages: [] });
    expect((await back(patch1)).json<Failure>().error.details).toEqual([
      `versionManifest: ${patch1} is not a rollback target; no patch is installed.`,
    ]);
  });
});

describe('a rollback of a new container', () => {
  it('removes the container, and the target version keeps the messages of its job', async () => {
    await start();
    const at = (id: string, build: string, previousBuild: string, more: object) => ({
      ...patchOf(id, build, previousBuild),
      containers: [],
      ...more,
    });
    const content = JSON.stringify([
      at('one', '1300', '1234', { containers: [{ name: 'MAP_SERVER', image: 'map:1300' }] }),
      at('two', '1301', '1300', { newContainers: [{ name: 'BRAND_NEW', image: 'new:1301' }] }),
    ]);
    const installed = (await upgrade('two', { versionManifestFile: { name: 'm', content } })).json<Status>();
    await finish();
    await server.post(`${upgrades}/rollback`, { token: admin, versionManifest: '{"id":"one"}' });
    const done = await finish();
    expect(codesOf(done).slice(5, -3)).toEqual([2904, 2173]);
    expect(done.status.messages[5]?.message).toBe(
      'The workload BRAND_NEW was removed: it had no former image.',
    );
    const current = await get<{ id: string; messages: Message[] }>(`${upgrades}/currentVersion`);
    expect(current.id).toBe('one');
    expect(current.messages).toHaveLength(
      (await get<Status>(`/admin/system/jobs/${installed.jobId}`)).messageCount,
    );
  });
});
