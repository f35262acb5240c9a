// Performs the patch `pat` on Kubernetes, and kills its process at requests that it sends to the API server.
import { expect } from 'vitest';
import type { Cluster } from '../kubernetes/cluster.ts';
import { type Message, timesResumed } from '../upgrades/message-codes.ts';
import { connect, createSeededDatabase, startSteward } from './steward.ts';
import { upgrades } from './upgrade.ts';

/** A process sends such a request only once before it is killed. The proxy forwards the request or not. */
type RequestToKillAt = { readonly method: string; readonly path: RegExp; readonly isForwarded: boolean };

/** Resolves when the process is dead. */
function killAtRequest(
  { faults }: Cluster,
  { isForwarded, ...request }: RequestToKillAt,
  kill: () => Promise<void>,
): Promise<void> {
  return new Promise((resolve) => {
    const act = async () => {
      await kill();
      resolve();
      if (!isForwarded) throw new Error('the client is gone');
    };
    faults.inject({ ...request, act });
  });
}

/** Returns the messages of the job when it has succeeded. Each process was killed at its request but the last. */
export async function patchWithKills(
  cluster: Cluster,
  patch: object,
  kills: readonly RequestToKillAt[],
): Promise<Message[]> {
  const { url } = await createSeededDatabase();
  const query = await connect(url);
  const { kubeconfig: KUBECONFIG } = cluster;
  const env = { UPGRADE_EXECUTOR: 'kubernetes', KUBECONFIG, INSTALLED_VERSION: '10.9.1.1234' };
  let steward = await startSteward(url, env);
  const token = await steward.signIn();
  const manifestFile = new Blob([JSON.stringify([patch])]);
  expect(await steward.post(`${upgrades}/importManifest`, { manifestFile }, token)).toMatchObject({
    status: 200,
  });
  for (const [index, request] of kills.entries()) {
    const dead = killAtRequest(cluster, request, () => steward.kill());
    // The process may be killed before it has answered.
    if (index === 0)
      void steward
        .post(`${upgrades}/upgrade`, { versionManifest: '{"id":"pat"}' }, token)
        .catch(() => undefined);
    await dead;
    // Without this, the next process waits until the lease of the killed one expires.
    await query('delete from processes');
    steward = await startSteward(url, env);
  }
  const status = async () =>
    ((await steward.get(upgrades, token)).body as { status: { state: string; messages: Message[] } }).status;
  await expect.poll(async () => (await status()).state, { timeout: 120_000 }).toBe('success');
  const { messages } = await status();
  expect(timesResumed(messages)).toBe(kills.length);
  return messages;
}
