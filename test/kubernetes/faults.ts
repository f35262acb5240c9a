// A proxy in front of an API server: it records requests, and injects faults.
import { type IncomingMessage, type ServerResponse, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import type { Upstream } from './upstream.ts';

/** The body is parsed; the status is undefined until there is a response. */
export type RecordedRequest = {
  method: string;
  path: string;
  contentType: string | undefined;
  token: string | undefined;
  body: unknown;
  status: number | undefined;
};

/**
 * An object is sent as the response. `cut` closes the connection before the request is forwarded, `swallow` after
 * the server has answered; `hang` neither forwards nor answers. A function runs before the request is forwarded, and may
 * return another body for it, like an admission policy.
 */
export type Act =
  | { status: number; headers?: Record<string, string>; body?: unknown }
  | 'cut'
  | 'swallow'
  | 'hang'
  | ((request: RecordedRequest) => Promise<unknown>);

/** Applies to the next requests that match: one, or as many as `times`. */
export type Fault = { method?: string; path?: RegExp; token?: string; times?: number; act: Act };

export type Faults = Awaited<ReturnType<typeof startFaults>>;

export async function startFaults(upstream: Upstream) {
  const requests: RecordedRequest[] = [];
  const injected = new Set<Fault & { left: number }>();
  /** The user of forwarded requests; without one they have all permissions. */
  const proxy: { user: string | undefined } = { user: undefined };

  function takeFault(recorded: RecordedRequest): Act | undefined {
    for (const fault of injected) {
      if (fault.method !== undefined && fault.method !== recorded.method) continue;
      if (fault.path !== undefined && !fault.path.test(recorded.path)) continue;
      if (fault.token !== undefined && fault.token !== recorded.token) continue;
      fault.left -= 1;
      if (fault.left <= 0) injected.delete(fault);
      return fault.act;
    }
    return undefined;
  }

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let body = await text(request);
    const recorded: RecordedRequest = {
      method: request.method ?? '',
      path: request.url ?? '',
      contentType: request.headers['content-type'],
      token: request.headers.authorization?.replace('Bearer ', ''),
      body: parse(body),
      status: undefined,
    };
    requests.push(recorded);
    const act = takeFault(recorded);
    if (act === 'hang') return;
    if (act === 'cut') {
      request.socket.destroy();
      return;
    }
    if (typeof act === 'object') {
      recorded.status = act.status;
      response.writeHead(act.status, { 'content-type': 'application/json', ...act.headers });
      response.end(
        typeof act.body === 'string' ? act.body : JSON.stringify(act.body ?? statusOf(act.status)),
      );
      return;
    }
    if (typeof act === 'function') {
      const changed = await act(recorded);
      if (typeof changed === 'string') body = changed;
    }
    const { method, path, contentType } = recorded;
    const answer = await upstream.send({ method, path, body, contentType, user: proxy.user });
    if (act === 'swallow') {
      request.socket.destroy();
      return;
    }
    recorded.status = answer.code;
    response.writeHead(answer.code, { 'content-type': answer.contentType });
    response.end(answer.body);
  }

  const server = createServer((request, response) => {
    serve(request, response).catch(() => request.socket.destroy());
  });
  server.keepAliveTimeout = 60_000;
  const listen = (port: number) =>
    new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(port, '127.0.0.1', () => {
        server.off('error', reject);
        resolve();
      });
    });
  const stop = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  await listen(0);
  const { port } = server.address() as AddressInfo;

  return Object.assign(proxy, {
    url: `http://127.0.0.1:${port}`,
    requests,
    /** Returns a function that removes the fault. */
    inject(fault: Fault): () => void {
      const one = { ...fault, left: fault.times ?? 1 };
      injected.add(one);
      return () => injected.delete(one);
    },
    /** Stops listening and closes all connections. */
    down: stop,
    up: () => listen(port),
    close: stop,
  });
}

function parse(content: string): unknown {
  if (content === '') return undefined;
  try {
    return JSON.parse(content);
  } catch {
    return content;
  }
}

/** The default body of an injected response. */
const statusOf = (code: number) => ({
  kind: 'Status',
  apiVersion: 'v1',
  metadata: {},
  status: code < 400 ? 'Success' : 'Failure',
  message: `injected ${code}`,
  code,
});
