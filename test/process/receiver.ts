// A receiver of webhooks that records what arrives and checks every signature, and webhooks for it.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Webhook } from 'standardwebhooks';
import { expect, onTestFinished } from 'vitest';
import { noteSecret } from '../kit/leaks.ts';
import { type Client, pause } from './steward.ts';

export const webhooksPath = '/admin/services/webhooks';

export type Receiver = Awaited<ReturnType<typeof startReceiver>>;

export type ReceiverOptions = {
  /** Returns the status and, after a space, the body of the response. */
  readonly respond?: (eventId: string) => string | Promise<string>;
};

/** Starts a receiver. It accepts every event at once unless `respond` says otherwise. */
export async function startReceiver({ respond = () => '204' }: ReceiverOptions = {}) {
  /** How often each event has arrived. */
  const arrivals = new Map<string, number>();
  /** The signature keys that its webhook has or had, the newest last. */
  const keys: string[] = [];
  const badSignatures: string[] = [];
  const isSignedBy = (key: string, body: string, headers: Record<string, string>) => {
    try {
      new Webhook(key).verify(body, headers);
      return true;
    } catch {
      return false;
    }
  };
  const answer = async (id: string) => {
    while (arrivals.size > receiver.mostAnswered) await pause(10);
    return respond(id);
  };
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const body = Buffer.concat(chunks).toString();
      const headers = request.headers as Record<string, string>;
      const id = headers['webhook-id'] ?? '';
      // The newest first, because it has signed most deliveries.
      const key = keys.findLast((key) => isSignedBy(key, body, headers));
      if (key === undefined) badSignatures.push(id);
      arrivals.set(id, (arrivals.get(id) ?? 0) + 1);
      void answer(id).then((text) => {
        const [status = '', ...body] = text.split(' ');
        response.writeHead(Number(status)).end(body.join(' '));
      });
    });
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');

  const receiver = {
    /** It answers nobody while more events than these have arrived. */
    mostAnswered: Infinity,
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/in`,
    arrivals,
    keys,
    badSignatures,
    /** The id of the webhook that `register` has created. */
    webhookId: '',
    /** How many arrivals repeat an earlier one. */
    duplicates: () => [...arrivals.values()].reduce((sum, count) => sum + count - 1, 0),
  };
  onTestFinished(() => {
    receiver.mostAnswered = Infinity;
    server.close().closeAllConnections();
  });
  return receiver;
}

/** Registers a webhook for the receiver and returns its id when every process has it. */
export async function register(
  stewards: readonly Client[],
  token: string,
  receiver: Receiver,
  changeTypes: string,
): Promise<string> {
  const fields = { name: receiver.url, hookUrl: receiver.url, changeTypes };
  const created = await stewards[0]?.post(`${webhooksPath}/create`, fields, token);
  assert(created?.status === 200);
  const { webhook, signatureKey } = created.body as { webhook: { id: string }; signatureKey: string };
  noteSecret(signatureKey);
  receiver.keys.push(signatureKey);
  receiver.webhookId = webhook.id;
  for (const steward of stewards)
    await expect
      .poll(async () => (await steward.get(`${webhooksPath}/${webhook.id}`, token)).status)
      .toBe(200);
  return webhook.id;
}

export const publish = (steward: Client, token: string, eventId: string) =>
  steward.post(`${webhooksPath}/publish`, { changeType: 'Tested', eventId }, token);

export async function changeSettings(
  steward: Client,
  token: string,
  settings: Record<string, string>,
): Promise<void> {
  expect(await steward.post(`${webhooksPath}/settings`, settings, token)).toMatchObject({ status: 200 });
}

export type ListedDelivery = {
  readonly state: string;
  readonly event: { readonly id: string };
  readonly attempts: readonly { readonly status: number | null }[];
};

/** All deliveries of the webhook, newest first. Complete only while no delivery is added. */
export async function listDeliveries(
  steward: Client,
  token: string,
  webhookId: string,
): Promise<ListedDelivery[]> {
  const listed: ListedDelivery[] = [];
  for (;;) {
    const path = `${webhooksPath}/${webhookId}/deliveries?num=100&start=${listed.length}`;
    const { body } = await steward.get(path, token);
    const { deliveries, total } = body as { deliveries: ListedDelivery[]; total: number };
    listed.push(...deliveries);
    if (listed.length >= total || deliveries.length === 0) return listed;
  }
}

/** Waits until these events and no others are delivered to the receiver, and checks that they have arrived. */
export async function expectDelivered(
  steward: Client,
  token: string,
  { webhookId, arrivals, badSignatures }: Receiver,
  events: readonly string[],
): Promise<void> {
  const states = async () =>
    (await listDeliveries(steward, token, webhookId))
      .map(({ state, event }) => `${state} ${event.id}`)
      .sort();
  // What a killed process had claimed is delivered after its lease.
  const expected = events.map((eventId) => `delivered ${eventId}`).sort();
  await expect.poll(states, { timeout: 60_000, interval: 100 }).toEqual(expected);
  expect([...arrivals.keys()].sort()).toEqual([...events].sort());
  expect(badSignatures).toEqual([]);
}

/** The number of pending deliveries that the process reports. */
export async function countPending(steward: Client): Promise<number> {
  const { text } = (await steward.ask('/metrics')).body as { text: string };
  return Number(/^steward_webhook_deliveries_pending (\d+)$/m.exec(text)?.[1]);
}
