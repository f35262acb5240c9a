// The faults that the proxy in front of a cluster injects, and the requests that it records.
import { beforeAll, describe, expect, it } from 'vitest';
import { refusal, strategic, useClient } from '../kubernetes/client.ts';

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
  it('records requests', async () => {
    await write('me');
    expect(client.cluster.faults.requests.at(-1)).toEqual({
      method: 'PATCH',
      path: `/apis/apps/v1/namespaces/${where.namespace}/deployments/${where.name}`,
      contentType: 'application/strategic-merge-patch+json',
      body: { metadata: { labels: { by: 'me' } } },
      status: 200,
    });
  });

  it('sends an injected response to matching requests, as often as requested', async () => {
    const { faults } = client.cluster;
    faults.inject({ method: 'GET', path: /deployments/, times: 2, act: { status: 503 } });
    await write('me');
    expect(await refusal(read())).toMatchObject({ code: 503 });
    expect(await refusal(read())).toMatchObject({ code: 503 });
    await read();
    const body = { kind: 'Status', message: 'slow down', reason: 'TooManyRequests' };
    faults.inject({ act: { status: 429, headers: { 'retry-after': '1' }, body } });
    expect(await refusal(read())).toEqual({ code: 429, reason: 'TooManyRequests', message: 'slow down' });
    const removeFault = faults.inject({ act: { status: 500 }, times: Infinity });
    expect(await refusal(read())).toMatchObject({ code: 500 });
    removeFault();
    await read();
  });

  it('closes the connection before it forwards a request', async () => {
    client.cluster.faults.inject({ method: 'PATCH', act: 'cut' });
    await expect(write('a-cut-request')).rejects.toMatchObject({ code: 'ECONNRESET' });
    expect(await writtenBy()).not.toBe('a-cut-request');
    expect(client.cluster.faults.requests.at(-1)?.status).toBeUndefined();
  });

  it('closes the connection after the server has answered', async () => {
    client.cluster.faults.inject({ method: 'PATCH', act: 'swallow' });
    await expect(write('a-lost-response')).rejects.toMatchObject({ code: 'ECONNRESET' });
    expect(await writtenBy()).toBe('a-lost-response');
  });

  it('leaves a request without a response', async () => {
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

  it('runs a function before it forwards a request', async () => {
    const { metadata } = await read();
    client.cluster.faults.inject({
      method: 'PATCH',
      act: async ({ body }) => {
        expect(body).toHaveProperty('metadata.labels');
        await client.cluster.patch('Deployment', where.name, {
          metadata: { labels: { by: 'another-client' } },
        });
      },
    });
    const body = { metadata: { labels: { by: 'me' }, resourceVersion: metadata?.resourceVersion } };
    const late = client.apps.patchNamespacedDeployment({ ...where, body }, strategic);
    expect(await refusal(late)).toMatchObject({ code: 409 });
    expect(await writtenBy()).toBe('another-client');
  });

  it('stops listening, and listens on the same port again', async () => {
    const { faults } = client.cluster;
    await faults.down();
    await expect(read()).rejects.toMatchObject({ code: 'ECONNREFUSED' });
    await faults.up();
    await read();
  });
});
