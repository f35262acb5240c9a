// What the tests of webhooks share: a server with an administrator's hands, and a receiver that records what it is sent.
import { expect } from 'vitest';
import type { Answer, Outgoing } from '../../src/runtime.ts';
import { type ServerOptions, startServer } from './server.ts';

export type ToldDelivery = {
  id: string;
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
};

/** What was posted, and when. */
export type Arrival = Outgoing & { at: number };

export type Hooks = Awaited<ReturnType<typeof startHooks>>;

export async function startHooks(options: ServerOptions = {}) {
  const arrivals: Arrival[] = [];
  /** Statuses to answer next; the last one goes on. */
  let answers: (number | Answer)[] = [200];
  const server = await startServer({
    receiver: (outgoing, _signal, at) => {
      arrivals.push({ ...outgoing, at });
      return (answers.length > 1 ? answers.shift() : answers[0]) ?? 200;
    },
    ...options,
  });
  const administrator = { authorization: `Bearer ${server.token('administrator')}` };

  /** Posts as an administrator; expects success. */
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

  return {
    ...server,
    administrator,
    arrivals,
    act,
    read,
    answerWith: (...next: (number | Answer)[]) => (answers = next),
    /** Registers a webhook; answers its id and key. */
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
    publish: (fields: Record<string, string> = {}) =>
      act<{ eventId: string; deliveries: number }>('publish', { changeType: 'Tested', ...fields }),
    settle: () => server.runtime.advance(0),
    deliveriesOf: (id: string) =>
      read<{ deliveries: ToldDelivery[]; total: number }>(`/${id}/deliveries?num=100`),
  };
}

/** A policy with which tests are short to tell. */
export const quick = {
  notificationAttempts: '3',
  notificationElapsedTimeInSeconds: '5',
  numberOfFailures: '2',
  daysInPast: '5',
};

export const bodyOf = ({ body }: Outgoing) => JSON.parse(body) as Record<string, unknown>;
