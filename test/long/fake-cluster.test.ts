// The behaviour of a cluster that other tests rely on, through the client library: of the fake one, or the real one
// of STEWARD_TEST_KUBECONFIG.
import { AuthorizationV1Api, CoordinationV1Api, V1MicroTime, VersionApi } from '@kubernetes/client-node';
import { afterEach, describe, expect, it } from 'vitest';
import { refusal, strategic, useClient } from '../kubernetes/client.ts';
import { imageOf } from '../kubernetes/workloads.ts';

const client = useClient();
afterEach(() => {
  client.cluster.faults.user = undefined;
});

/** The name and namespace of a Deployment that is rolled out. */
async function settleDeployment() {
  const name = await client.settle('Deployment', 1);
  return { name, namespace: client.cluster.namespace };
}

const label = { metadata: { labels: { by: 'another' } } };

describe('a write', () => {
  it('is refused if another client wrote after the read', async () => {
    const { apps } = client;
    const where = await settleDeployment();
    const resourceVersion = (await apps.readNamespacedDeployment(where)).metadata?.resourceVersion ?? '';
    await apps.patchNamespacedDeployment({ ...where, body: label }, strategic);
    const late = { ...imageOf('web:2'), metadata: { resourceVersion } };
    expect(await refusal(apps.patchNamespacedDeployment({ ...where, body: late }, strategic))).toMatchObject({
      code: 409,
      reason: 'Conflict',
      message: expect.stringContaining('the object has been modified') as string,
    });
    const body = await apps.readNamespacedDeployment(where);
    if (body.metadata) body.metadata.resourceVersion = resourceVersion;
    expect(await refusal(apps.replaceNamespacedDeployment({ ...where, body }))).toMatchObject({
      code: 409,
      reason: 'Conflict',
    });
  });

  it('increments the generation for a changed spec, but not for a changed status', async () => {
    const { apps, cluster } = client;
    const where = { name: await client.settle('StatefulSet'), namespace: cluster.namespace };
    const { metadata } = await cluster.read('StatefulSet', where.name);
    const status = { conditions: [{ type: 'Tested', status: 'True' }] };
    const patched = await apps.patchNamespacedStatefulSetStatus(
      { ...where, body: { status, spec: { replicas: 7 } } },
      strategic,
    );
    expect(patched.metadata?.generation).toBe(metadata.generation);
    expect(patched.metadata?.resourceVersion).not.toBe(metadata.resourceVersion);
    expect(patched.spec?.replicas).toBe(2);
    const changed = await apps.patchNamespacedStatefulSet(
      { ...where, body: { spec: { replicas: 1 }, status: { replicas: 9 } } },
      strategic,
    );
    expect(changed.metadata?.generation).toBe((metadata.generation ?? 0) + 1);
    expect(changed.status?.replicas).toBe(2);
  });

  it('increments the generation for changed annotations of a Deployment, but not for labels', async () => {
    const { apps } = client;
    const where = await settleDeployment();
    const labelled = await apps.patchNamespacedDeployment({ ...where, body: label }, strategic);
    expect(labelled.metadata?.generation).toBe(1);
    const body = { metadata: { annotations: { by: 'another' } } };
    const annotated = await apps.patchNamespacedDeployment({ ...where, body }, strategic);
    expect(annotated.metadata?.generation).toBe(2);
  });

  it('without a difference changes nothing', async () => {
    const { name } = await settleDeployment();
    const { metadata } = await client.roll('Deployment', name, 'web:1');
    const again = await client.roll('Deployment', name, 'web:1');
    expect(again.metadata.resourceVersion).toBe(metadata.resourceVersion);
  });

  it('of an unknown container adds that container', async () => {
    const where = await settleDeployment();
    const body = imageOf('other:1', 'other');
    const { spec } = await client.apps.patchNamespacedDeployment({ ...where, body }, strategic);
    expect(spec?.template.spec?.containers.map(({ name, image }) => `${name} ${image ?? ''}`)).toEqual([
      'other other:1',
      'web web:1',
    ]);
  });

  it('of an invalid object is refused', async () => {
    const { apps } = client;
    const { namespace, name } = await settleDeployment();
    expect(await refusal(apps.readNamespacedDeployment({ namespace, name: 'none' }))).toEqual({
      code: 404,
      reason: 'NotFound',
      message: 'deployments.apps "none" not found',
    });
    const body = await apps.readNamespacedDeployment({ namespace, name });
    body.metadata = { name };
    expect(await refusal(apps.createNamespacedDeployment({ namespace, body }))).toMatchObject({
      code: 409,
      reason: 'AlreadyExists',
    });
    body.metadata = { name: 'unlike' };
    if (body.spec) body.spec.selector.matchLabels = { app: 'unlike' };
    expect(await refusal(apps.createNamespacedDeployment({ namespace, body }))).toMatchObject({
      code: 422,
      reason: 'Invalid',
    });
  });

  it('of a Lease needs times with six decimals, and a resource version', async () => {
    const { cluster } = client;
    const leases = client.config.makeApiClient(CoordinationV1Api);
    const { namespace } = cluster;
    const time = '2026-01-02T03:04:05.678Z';
    const spec = { holderIdentity: 'me', renewTime: new V1MicroTime(time) };
    const metadata = { name: 'lock' };
    const body = await leases.createNamespacedLease({ namespace, body: { metadata, spec } });
    const path = `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases`;
    expect(await cluster.request('GET', `${path}/lock`)).toMatchObject({
      spec: { renewTime: time.replace('Z', '000Z') },
    });
    const short = { metadata: { name: 'short' }, spec: { renewTime: time } };
    await expect(cluster.request('POST', path, short)).rejects.toMatchObject({ code: 400 });
    await leases.replaceNamespacedLease({ name: 'lock', namespace, body });
    body.metadata = metadata;
    expect(await refusal(leases.replaceNamespacedLease({ name: 'lock', namespace, body }))).toMatchObject({
      code: 422,
    });
  });
});

describe('permissions', () => {
  it('are those of an administrator by default', async () => {
    expect((await client.core.listNamespace()).items.length).toBeGreaterThan(0);
  });

  it('are only those that allow() lists', async () => {
    const { apps, core, cluster, config } = client;
    const where = await settleDeployment();
    await cluster.allow([
      { apiGroups: ['apps'], resources: ['deployments'], verbs: ['get', 'list'] },
      { apiGroups: [''], resources: ['pods'], verbs: ['list'] },
    ]);
    await apps.readNamespacedDeployment(where);
    await core.listNamespacedPod(where);
    expect(await refusal(apps.patchNamespacedDeployment({ ...where, body: label }, strategic))).toEqual({
      code: 403,
      reason: 'Forbidden',
      message:
        `deployments.apps "${where.name}" is forbidden: User "${cluster.faults.user ?? ''}" cannot patch ` +
        `resource "deployments" in API group "apps" in the namespace "${where.namespace}"`,
    });
    expect(await refusal(core.listNamespace())).toMatchObject({ code: 403 });
    expect((await config.makeApiClient(VersionApi).getCode()).major).toBe('1');
    const mayPatch = { resource: 'deployments', group: 'apps', verb: 'patch', namespace: where.namespace };
    const reviews = config.makeApiClient(AuthorizationV1Api);
    for (const [verb, allowed] of [['patch', false] as const, ['get', true] as const]) {
      const body = { spec: { resourceAttributes: { ...mayPatch, verb } } };
      expect((await reviews.createSelfSubjectAccessReview({ body })).status?.allowed).toBe(allowed);
    }
  });

  it('are replaced by the next allow()', async () => {
    const { apps, cluster } = client;
    const where = await settleDeployment();
    await cluster.allow([{ apiGroups: ['apps'], resources: ['deployments'], verbs: ['get'] }]);
    await cluster.allow([{ apiGroups: ['apps'], resources: ['deployments'], verbs: ['list'] }]);
    await apps.listNamespacedDeployment(where);
    expect(await refusal(apps.readNamespacedDeployment(where))).toMatchObject({ code: 403 });
  });
});

it('a list contains only objects that match the label selector', async () => {
  const { name, namespace } = await settleDeployment();
  const found = await client.core.listNamespacedPod({
    namespace,
    labelSelector: `app in (${name}, none),!other,steward-test/kind=deployment`,
  });
  expect(found.items.map(({ metadata }) => metadata?.labels?.app)).toEqual([name]);
  expect(found.metadata?.resourceVersion).toMatch(/^\d+$/);
  const nothing = await client.core.listNamespacedPod({ namespace, labelSelector: `app=${name},other` });
  expect(nothing.items).toEqual([]);
});

it('a patch that is no strategic merge is refused', async () => {
  const where = await settleDeployment();
  expect(await refusal(client.apps.patchNamespacedDeployment({ ...where, body: label }))).toMatchObject({
    code: client.cluster.isReal ? 400 : 415,
  });
});
