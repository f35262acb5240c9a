// A fake HTTP client for webhook deliveries: a function of the test answers in place of the receivers.
import type { Runtime } from '../../src/runtime.ts';
import type { HttpClient, OutgoingRequest, ReceivedResponse } from '../../src/webhooks/http-client.ts';

/** Returns the response, or its status only. */
export type Receiver = (
  request: OutgoingRequest,
  signal: AbortSignal,
  at: number,
) => number | ReceivedResponse | Promise<number | ReceivedResponse>;

/** A receiver that never responds. */
export const blackHole: Receiver = () => new Promise(() => undefined);

/** Without a receiver, every connection is refused. */
export type FakeHttpClient = HttpClient & { receiver: Receiver };

export function createFakeHttpClient({ now }: Pick<Runtime, 'now'>): FakeHttpClient {
  return {
    receiver: () => {
      throw new Error('The connection was refused.');
    },
    async post(request, signal) {
      const aborted = new Promise<never>((_resolve, reject) =>
        signal.addEventListener('abort', () => reject(new Error('aborted'))),
      );
      aborted.catch(() => undefined);
      const response = await Promise.race([aborted, this.receiver(request, signal, now())]);
      return typeof response === 'number' ? { status: response, body: Buffer.alloc(0) } : response;
    },
    close: () => Promise.resolve(),
  };
}
