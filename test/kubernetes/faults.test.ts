// What the proxy before a cluster can break, and what it tells of it.
import { beforeAll, describe, expect, it } from 'vitest';
import { refusal, strategic, useClient } from './client.ts';

const client = useClient();
let where: { name: string; namespace: string };
beforeAll(async () => {
  where = { name: await client.settle('Deployment', 1), namespace: client.cluster.namespace };
});

const read = () => client.apps.readNamespacedDeployment(where);
const write = (by: string) =>
  client.apps.patchNamespacedDeployment({ ...where, body: { metadata: { labels: { by } } } }, strategic);
const writtenBy = async () =>
  (await client.cluster.read('Deployment', where.name)).metadata.labels?.by ?? 'nobody';

describe('the proxy', () => {
  it('tells what was asked', async () => {
    await write('me');
    expect(client.cluster.faults.requests.at(-1)).toEqual({
      method: 'PATCH',
      path: `/apis/apps/v1/namespaces/${where.namespace}/deployments/${where.name}`,
      contentType: 'application/strategic-merge-patch+json',
      body: { metadata: { labels: { by: 'me' } } },
      status: 200,
    });
  });

  it('answers by itself, for the requests and as often as it is told', async () => {
    const { faults } = client.cluster;
    faults.inject({ method: 'GET', path: /deployments/, times: 2, act: { status: 503 } });
    await write('me');
    expect(await refusal(read())).toMatchObject({ code: 503 });
    expect(await refusal(read())).toMatchObject({ code: 503 });
    await read();
    const body = { kind: 'Status', message: 'slow down', reason: 'TooManyRequests' };
    faults.inject({ act: { status: 429, headers: { 'retry-after': '1' }, body } });
    expect(await refusal(read())).toEqual({ code: 429, reason: 'TooManyRequests', message: 'slow down' });
    const takeBack = faults.inject({ act: { status: 500 }, times: Infinity });
    expect(await refusal(read())).toMatchObject({ code: 500 });
    takeBack();
    await read();
  });

  it('cuts a request before it arrives', async () => {
    client.cluster.faults.inject({ method: 'PATCH', act: 'cut' });
    await expect(write('one-who-was-cut')).rejects.toMatchObject({ code: 'ECONNRESET' });
    expect(await writtenBy()).not.toBe('one-who-was-cut');
    expect(client.cluster.faults.requests.at(-1)?.status).toBeUndefined();
  });

  it('swallows an answer', async () => {
    client.cluster.faults.inject({ method: 'PATCH', act: 'swallow' });
    await expect(write('one-without-an-answer')).rejects.toMatchObject({ code: 'ECONNRESET' });
    expect(await writtenBy()).toBe('one-without-an-answer');
  });

  it('lets a request hang', async () => {
    const { faults } = client.cluster;
    faults.inject({ act: 'hang' });
    let answered = false;
    const hanging = read().finally(() => (answered = true));
    const lost = expect(hanging).rejects.toThrow();
    await expect.poll(() => faults.requests.at(-1)?.status).toBeUndefined();
    await read();
    expect(answered).toBe(false);
    await faults.down();
    await lost;
    await faults.up();
  });

  it('does something in between', async () => {
    const { metadata } = await read();
    client.cluster.faults.inject({
      method: 'PATCH',
      act: async ({ body }) => {
        expect(body).toHaveProperty('metadata.labels');
        await client.cluster.patch('Deployment', where.name, {
          metadata: { labels: { by: 'a-quicker-one' } },
        });
      },
    });
    const body = { metadata: { labels: { by: 'me' }, resourceVersion: metadata?.resourceVersion } };
    const late = client.apps.patchNamespacedDeployment({ ...where, body }, strategic);
    expect(await refusal(late)).toMatchObject({ code: 409 });
    expect(await writtenBy()).toBe('a-quicker-one');
  });

  it('goes down and comes up at the same place', async () => {
    const { faults } = client.cluster;
    await faults.down();
    await expect(read()).rejects.toMatchObject({ code: 'ECONNREFUSED' });
    await faults.up();
    await read();
  });
});
