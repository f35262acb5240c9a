// A fake HTTP client for webhook deliveries: a function of the test answers in place of the receivers.
import { RequestError } from '../../src/lib/request-error.ts';
import type { Runtime } from '../../src/lib/runtime.ts';
import type {
  HttpClient,
  OutgoingRequest,
  ReceivedResponse,
} from '../../src/webhooks/sending/http-client.ts';
import { checkDelivery } from './check-deliveries.js';

/** A response, or its status only. */
export type Answer = number | (Omit<ReceivedResponse, 'headers'> & Partial<ReceivedResponse>);

export type Receiver = (
  request: OutgoingRequest,
  signal: AbortSignal,
  at: number,
) => Answer | Promise<Answer>;

/** A receiver that never responds. */
export const blackHole: Receiver = () => new Promise(() => undefined);

/** Without a receiver, every connection is refused. */
export type FakeHttpClient = HttpClient & { receiver: Receiver };

export function createFakeHttpClient({ now }: Pick<Runtime, 'now'>): FakeHttpClient {
  return {
    receiver: () => {
      throw new RequestError('The connection was refused.');
    },
    async post(request, signal) {
      checkDelivery(request.headers, request.body);
      const aborted = new Promise<never>((_resolve, reject) =>
        signal.addEventListener('abort', () => reject(new Error('aborted'))),
      );
      aborted.catch(() => undefined);
      const response = await Promise.race([aborted, this.receiver(request, signal, now())]);
      const given = typeof response === 'number' ? { status: response, body: Buffer.alloc(0) } : response;
      return { headers: {}, ...given };
    },
    load: () => Promise.resolve(),
    close: () => Promise.resolve(),
  };
}
