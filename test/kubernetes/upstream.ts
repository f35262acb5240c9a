// Sends requests to an API server, the fake one or the one of a kubeconfig.
import { KubeConfig } from '@kubernetes/client-node';
import { Agent, type RequestOptions, request } from 'node:https';
import { text } from 'node:stream/consumers';
import type { Api } from './api-server.ts';

/** Without a user it has the permissions of an administrator. */
export type Sent = {
  method: string;
  path: string;
  body: string;
  contentType: string | undefined;
  user?: string | undefined;
};

export type Received = { code: number; contentType: string; body: string };

export type Upstream = {
  send: (sent: Sent) => Promise<Received>;
  close: () => void;
};

/** The fake API server runs in this process, so that a busy machine delays it and the tests alike. */
export const connectFake = (api: Api): Upstream => ({
  send: (sent) => Promise.resolve(api.answer(sent)),
  close: () => api.controllers.close(),
});

/** Connects to the cluster of the current context. */
export async function connectReal(kubeconfig: string): Promise<Upstream> {
  const config = new KubeConfig();
  config.loadFromFile(kubeconfig);
  const options: RequestOptions = {};
  await config.applyToHTTPSOptions(options);
  const { ca, cert, key, rejectUnauthorized, headers, auth } = options;
  const url = new URL(config.getCurrentCluster()?.server ?? '');
  const agent = new Agent({
    ca,
    cert,
    key,
    keepAlive: true,
    ...(rejectUnauthorized !== undefined && { rejectUnauthorized }),
  });

  function send({ method, path, body, contentType, user }: Sent): Promise<Received> {
    const own = {
      ...(headers as Record<string, string>),
      ...(contentType !== undefined && { 'content-type': contentType }),
      ...(user !== undefined && { 'impersonate-user': user }),
      'content-length': Buffer.byteLength(body),
    };
    return new Promise((resolve, reject) => {
      const sending = request(
        new URL(url.pathname.replace(/\/$/, '') + path, url),
        { method, agent, headers: own, ...(typeof auth === 'string' && { auth }) },
        (answer) =>
          void text(answer).then(
            (received) =>
              resolve({
                code: answer.statusCode ?? 502,
                contentType: answer.headers['content-type'] ?? 'application/json',
                body: received,
              }),
            reject,
          ),
      );
      sending.on('error', reject);
      sending.end(body);
    });
  }

  return { send, close: () => agent.destroy() };
}
