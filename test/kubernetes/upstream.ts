// Connects to an API server, the fake one or the one of a kubeconfig, with the permissions of an administrator.
import { KubeConfig } from '@kubernetes/client-node';
import {
  type IncomingMessage,
  type OutgoingHttpHeaders,
  Agent as HttpAgent,
  request as httpRequest,
} from 'node:http';
import { Agent as HttpsAgent, type RequestOptions, request as httpsRequest } from 'node:https';

export type Sent = { method: string; path: string; headers: OutgoingHttpHeaders; body?: Buffer | string };

export type Upstream = {
  send: (sent: Sent, signal?: AbortSignal) => Promise<IncomingMessage>;
  close: () => void;
};

/** Connects to a URL without credentials, or to the cluster of a kubeconfig's current context. */
export async function openUpstream(target: { url: string } | { kubeconfig: string }): Promise<Upstream> {
  if ('url' in target) return createUpstream(target.url, {});
  const config = new KubeConfig();
  config.loadFromFile(target.kubeconfig);
  const options: RequestOptions = {};
  await config.applyToHTTPSOptions(options);
  return createUpstream(config.getCurrentCluster()?.server ?? '', options);
}

function createUpstream(
  base: string,
  { ca, cert, key, rejectUnauthorized, headers, auth }: RequestOptions,
): Upstream {
  const url = new URL(base);
  const isSecure = url.protocol === 'https:';
  const tls = { ca, cert, key, ...(rejectUnauthorized === undefined ? {} : { rejectUnauthorized }) };
  const agent = isSecure ? new HttpsAgent({ ...tls, keepAlive: true }) : new HttpAgent({ keepAlive: true });
  const prefix = url.pathname.replace(/\/$/, '');

  return {
    send: ({ method, path, headers: own, body }, signal) =>
      new Promise((resolve, reject) => {
        const options: RequestOptions = {
          method,
          agent,
          path: prefix + path,
          hostname: url.hostname,
          port: url.port,
          headers: { ...own, ...(headers as OutgoingHttpHeaders | undefined), host: url.host },
          ...(typeof auth === 'string' ? { auth } : {}),
          ...(signal === undefined ? {} : { signal }),
        };
        const sending = (isSecure ? httpsRequest : httpRequest)(options, resolve);
        sending.on('error', reject);
        sending.end(body);
      }),
    close: () => agent.destroy(),
  };
}
