// A proxy in front of an API server: it records requests, and injects faults.
import { type IncomingMessage, type ServerResponse, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { pipeline } from 'node:stream';
import { type Upstream, openUpstream } from './upstream.ts';

/** The body is parsed; the status is undefined until there is a response. */
export type RecordedRequest = {
  method: string;
  path: string;
  contentType: string | undefined;
  body: unknown;
  status: number | undefined;
};

/**
 * An object is sent as the response. `cut` closes the connection before the request is forwarded, `swallow` after
 * the server has answered; `hang` neither forwards nor answers. A function runs before the request is forwarded.
 */
export type Act =
  | { status: number; headers?: Record<string, string>; body?: unknown }
  | 'cut'
  | 'swallow'
  | 'hang'
  | ((request: RecordedRequest) => Promise<void>);

/** Applies to the next requests that match: one, or as many as `times`. */
export type Fault = { method?: string; path?: RegExp; times?: number; act: Act };

export type FaultsOptions = {
  target: { url: string } | { kubeconfig: string };
  /** The user of forwarded requests; without one they have all permissions. */
  user?: string;
};

export type Faults = Awaited<ReturnType<typeof startFaults>>;

export async function startFaults({ target, user }: FaultsOptions) {
  const upstream = await openUpstream(target);
  const requests: RecordedRequest[] = [];
  const injected = new Set<Fault & { left: number }>();
  const proxy = { user };

  function takeFault(recorded: RecordedRequest): Act | undefined {
    for (const fault of injected) {
      if (fault.method !== undefined && fault.method !== recorded.method) continue;
      if (fault.path !== undefined && !fault.path.test(recorded.path)) continue;
      fault.left -= 1;
      if (fault.left <= 0) injected.delete(fault);
      return fault.act;
    }
    return undefined;
  }

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await readAll(request);
    const recorded: RecordedRequest = {
      method: request.method ?? '',
      path: request.url ?? '',
      contentType: request.headers['content-type'],
      body: parse(body.toString()),
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
    if (typeof act === 'function') await act(recorded);
    const disconnected = new AbortController();
    if (act !== 'swallow') response.on('close', () => disconnected.abort());
    const answer = await forward(upstream, request, body, proxy.user, disconnected.signal);
    if (act === 'swallow') {
      await readAll(answer);
      request.socket.destroy();
      return;
    }
    recorded.status = answer.statusCode;
    const { connection: _connection, 'keep-alive': _keepAlive, ...headers } = answer.headers;
    response.writeHead(answer.statusCode ?? 502, headers);
    pipeline(answer, response, () => undefined);
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
    async close(): Promise<void> {
      await stop();
      upstream.close();
    },
  });
}

function forward(
  upstream: Upstream,
  { method = '', url = '', headers: given }: IncomingMessage,
  body: Buffer,
  user: string | undefined,
  signal: AbortSignal,
): Promise<IncomingMessage> {
  const { host: _host, connection: _connection, 'transfer-encoding': _encoding, ...headers } = given;
  return upstream.send(
    {
      method,
      path: url,
      body,
      headers: {
        ...headers,
        ...(body.length > 0 ? { 'content-length': body.length } : {}),
        ...(user === undefined ? {} : { 'impersonate-user': user }),
      },
    },
    signal,
  );
}

async function readAll(message: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of message) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

function parse(text: string): unknown {
  if (text === '') return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return text;
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
