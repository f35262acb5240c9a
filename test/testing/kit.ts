// A controlled server in this process, with real connections and a receiver of webhooks that answers as the test says.
import { type IncomingMessage, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { Webhook } from 'standardwebhooks';
import { afterAll } from 'vitest';
import { createControlClient } from '../../src/testing/control-client.ts';
import { createClient, listen } from '../kit/steward.ts';

export type Controlled = Awaited<ReturnType<typeof startControl>>;

export const envelope = (content: string) =>
  `<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body>${content}</s:Body></s:Envelope>`;

/** Starts a server that ends after the tests of the file. */
export async function startControl(env: Record<string, string> = {}) {
  const variables = { TEST_CONTROL: 'true', WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8', ...env };
  const { port, token, logLines, close } = await listen(variables);
  afterAll(close);
  const url = `http://127.0.0.1:${port}`;
  const client = createClient(url, token);

  return {
    ...client,
    url,
    token,
    logLines,
    control: createControlClient({ address: url, token: env.TEST_CONTROL_TOKEN }),
    /** A request to the control API itself. */
    raw: (path: string, init: RequestInit = {}) => fetch(`${url}/control${path}`, init),
    soap: (content: string, headers: Record<string, string> = {}) =>
      client.send('/services', {
        method: 'POST',
        headers: { 'content-type': 'text/xml; charset=utf-8', authorization: '', ...headers },
        body: envelope(content),
      }),
  };
}

/** A receiver of webhooks. A status of 0 leaves requests without an answer. With a key it verifies signatures. */
export async function startReceiver() {
  const arrivals: string[] = [];
  const receiver = { status: 200, url: '', arrivals, key: '' };
  const server = createServer((request, response) => {
    arrivals.push(request.url ?? '');
    void answer(request).then((status) => {
      if (status > 0) response.writeHead(status).end();
    });
  });
  /** 401 if the library of receivers refuses the signature. */
  const answer = async (request: IncomingMessage): Promise<number> => {
    const body = await text(request);
    if (receiver.key === '') return receiver.status;
    try {
      new Webhook(receiver.key).verify(body, request.headers as Record<string, string>);
      return receiver.status;
    } catch {
      return 401;
    }
  };
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  receiver.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  afterAll(() => {
    server.closeAllConnections();
    server.close();
  });
  return receiver;
}

export const dayMs = 86_400_000;

/** Creates a webhook and returns its id. */
export async function createWebhook(
  { act }: Controlled,
  hookUrl: string,
  name = 'hook',
  more: Record<string, string> = {},
): Promise<string> {
  const fields = { name, hookUrl, changeTypes: '*', ...more };
  const { webhook } = await act<{ webhook: { id: string } }>('/admin/services/webhooks/create', fields);
  return webhook.id;
}
