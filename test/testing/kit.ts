// A controlled server in this process, with real connections and a receiver of webhooks that answers as the test says.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
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

/** A receiver of webhooks. A status of 0 leaves requests without an answer. */
export async function startReceiver() {
  const arrivals: string[] = [];
  const receiver = { status: 200, url: '', arrivals };
  const server = createServer((request, response) => {
    arrivals.push(request.url ?? '');
    request.resume();
    if (receiver.status > 0) response.writeHead(receiver.status).end();
  });
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
export async function createWebhook({ act }: Controlled, hookUrl: string, name = 'hook'): Promise<string> {
  const fields = { name, hookUrl, changeTypes: '*' };
  const { webhook } = await act<{ webhook: { id: string } }>('/admin/services/webhooks/create', fields);
  return webhook.id;
}
