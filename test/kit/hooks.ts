// Starts a server for webhook tests: with requests as an administrator, and a receiver that records what it gets.
import { expect } from 'vitest';
import type { OutgoingRequest } from '../../src/webhooks/sending/http-client.ts';
import type { Answer } from './http-client.ts';
import { type ServerOptions, startServer } from './server.ts';

export type DeliveryJson = {
  id: string;
  webhookId: string;
  webhookName: string | null;
  event: { id: string; type: string; timestamp: number };
  state: string;
  createdAt: number;
  endedAt: number | null;
  nextAttemptAt: number | null;
  attempts: {
    when: number;
    durationMs: number;
    status: number | null;
    error: string | null;
    response: string | null;
  }[];
  redeliveryOf?: string;
  redeliveredAs?: string;
};

/** A request that the receiver got, and when. */
export type Arrival = OutgoingRequest & { at: number };

export type Hooks = Awaited<ReturnType<typeof startHooks>>;

export async function startHooks(options: ServerOptions = {}) {
  const arrivals: Arrival[] = [];
  /** The next responses. The last one is repeated. */
  let answers: Answer[] = [200];
  const server = await startServer({
    receiver: (request, _signal, at) => {
      arrivals.push({ ...request, at });
      return (answers.length > 1 ? answers.shift() : answers[0]) ?? 200;
    },
    ...options,
  });
  const administrator = { authorization: `Bearer ${server.token('administrator')}` };

  /** Sends a POST as an administrator and expects success. */
  async function act<T = Record<string, unknown>>(path: string, fields: Record<string, string> = {}) {
    const response = await server.post(`/admin/services/webhooks/${path}`, fields, administrator);
    expect(response.json()).toMatchObject({ status: 'success' });
    return response.json<T>();
  }
  async function read<T = Record<string, unknown>>(path: string) {
    const response = await server.get(`/admin/services/webhooks${path}`, administrator);
    expect(response.statusCode).toBe(200);
    return response.json<T>();
  }
  let names = 0;
  const publish = (fields: Record<string, string> = {}) =>
    act<{ eventId: string; deliveries: number }>('publish', { changeType: 'Tested', ...fields });
  const settle = () => server.runtime.advance(0);

  return {
    ...server,
    administrator,
    arrivals,
    act,
    read,
    answerWith: (...next: Answer[]) => (answers = next),
    /** Creates a webhook and returns its id and key. */
    register: async (fields: Record<string, string> = {}) => {
      const { webhook, signatureKey } = await act<{ webhook: { id: string }; signatureKey: string }>(
        'create',
        {
          name: `hook ${(names += 1)}`,
          hookUrl: 'https://hooks.example/in',
          changeTypes: '*',
          ...fields,
        },
      );
      return { id: webhook.id, signatureKey };
    },
    publish,
    settle,
    /** Publishes an event and waits until its first attempts have ended. */
    deliver: async (fields?: Record<string, string>) => {
      await publish(fields);
      await settle();
    },
    deliveriesOf: (id: string) =>
      read<{ deliveries: DeliveryJson[]; total: number }>(`/${id}/deliveries?num=100`),
  };
}

/** Settings with few failures, for short tests. */
export const quick = {
  notificationAttempts: '3',
  notificationElapsedTimeInSeconds: '5',
  numberOfFailures: '2',
  daysInPast: '5',
};

export const bodyOf = ({ body }: OutgoingRequest) => JSON.parse(body) as Record<string, unknown>;
