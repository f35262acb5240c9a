// A fake Kubernetes API server with controllers: all objects in memory, no containers that run.
import { type IncomingMessage, type ServerResponse, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { startControllers } from './controllers.ts';
import type { KubeObject } from './objects.ts';
import { type Target, createRegistry } from './registry.ts';
import { authorize, parsePath, reviewAccess, reviewRules, verbOf } from './requests.ts';
import { discover, isKnownGroup, resourceOf, serverVersion } from './resources.ts';
import { matches, matchesFields, parseLabelSelector } from './selectors.ts';
import { StatusError, badRequest, methodNotAllowed, noSuchPath } from './status-error.ts';
import { type Change, createStorage } from './storage.ts';
import type { Received, Sent } from './upstream.ts';

export type ApiServer = { url: string; close: () => Promise<void> };

const reviewPath = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews';
const rulesPath = '/apis/authorization.k8s.io/v1/selfsubjectrulesreviews';

type Answer = { code: number; body: object | string };

export type Api = ReturnType<typeof createApi>;

/** The API server without HTTP, and its controllers. */
export function createApi() {
  const storage = createStorage();
  const registry = createRegistry(storage);
  for (const name of ['default', 'kube-system']) {
    registry.create({ resource: resourceOf('namespaces'), version: 'v1' }, { metadata: { name } });
  }
  const controllers = startControllers(storage, registry);

  function respond({ method, user, contentType, body }: Sent, url: URL): Answer | Target {
    const path = url.pathname;
    if (path === reviewPath && method === 'POST') {
      return { code: 201, body: reviewAccess(storage, user, parse(body)) };
    }
    if (path === rulesPath && method === 'POST') {
      return { code: 201, body: reviewRules(storage, user, parse(body)) };
    }
    const open = method === 'GET' ? publicResponse(path) : undefined;
    if (open !== undefined) return { code: 200, body: open };
    const target = parsePath(path);
    if (!target) {
      if (isKnownGroup(path)) throw noSuchPath();
      return { code: 404, body: '404 page not found\n' };
    }
    if (target.resource.isNamespaced && target.namespace === undefined && method !== 'GET') {
      throw methodNotAllowed();
    }
    const verb = verbOf(method, target, url.searchParams);
    authorize(storage, user, verb, target);
    if (verb === 'watch') return target;
    return act(verb, target, url.searchParams, body, contentType ?? 'application/json');
  }

  function act(
    verb: string,
    target: Target,
    query: URLSearchParams,
    body: string,
    contentType: string,
  ): Answer {
    const [type = ''] = contentType.split(';');
    if (verb === 'get') return { code: 200, body: registry.get(target) };
    if (verb === 'list') {
      const found = list(target, query);
      // In a list the real server leaves out apiVersion and kind.
      const items = found.items.map(({ apiVersion: _version, kind: _kind, ...rest }) => rest);
      return { code: 200, body: { ...found, items } };
    }
    if (verb === 'create' && target.name === undefined) {
      return { code: 201, body: registry.create(target, parse(body)) };
    }
    if (target.name === undefined) throw methodNotAllowed();
    if (verb === 'update') {
      return { code: registry.exists(target) ? 200 : 201, body: registry.update(target, parse(body)) };
    }
    if (verb === 'patch') return { code: 200, body: registry.patch(target, parse(body), type.trim()) };
    if (verb !== 'delete') throw methodNotAllowed();
    const deleted = registry.remove(target, body === '' ? undefined : parse(body));
    if (target.resource.name === 'pods') return { code: 200, body: deleted };
    const { group, name: kind } = target.resource;
    const details = {
      name: target.name,
      ...(group === '' ? {} : { group }),
      kind,
      uid: deleted.metadata.uid,
    };
    return {
      code: 200,
      body: { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', details },
    };
  }

  function isWanted(target: Target, query: URLSearchParams): (object: KubeObject) => boolean {
    const selector = parseLabelSelector(query.get('labelSelector') ?? '');
    const fields = query.get('fieldSelector') ?? '';
    return (object) =>
      (target.namespace === undefined || object.metadata.namespace === target.namespace) &&
      (target.name === undefined || object.metadata.name === target.name) &&
      matches(selector, object.metadata.labels) &&
      matchesFields(fields, object);
  }

  function list(target: Target, query: URLSearchParams) {
    const items = registry
      .list(target)
      .filter(isWanted(target, query))
      .sort((a, b) => (sortKey(a) < sortKey(b) ? -1 : 1));
    const { kind, group } = target.resource;
    const apiVersion = group === '' ? target.version : `${group}/${target.version}`;
    const limit = Number(query.get('limit') ?? '0') || items.length;
    const from = Number(query.get('continue') ?? '0');
    const left = items.length - from - limit;
    const rest = left > 0 && { continue: String(from + limit), remainingItemCount: left };
    return {
      kind: `${kind}List`,
      apiVersion,
      metadata: { resourceVersion: storage.version(), ...rest },
      items: items.slice(from, from + limit),
    };
  }

  /** Sends the changes after a version until the client disconnects. Only kubectl watches. */
  function watch(target: Target, query: URLSearchParams, response: ServerResponse): void {
    response.writeHead(200, { 'content-type': 'application/json' });
    const wanted = isWanted(target, query);
    const send = ({ type, resource, object }: Change) => {
      if (resource !== target.resource || !wanted(object)) return;
      response.write(`${JSON.stringify({ type, object })}\n`);
    };
    storage.changesSince(Number(query.get('resourceVersion') ?? 0)).forEach(send);
    const stop = storage.onChange(send);
    response.flushHeaders();
    const seconds = Number(query.get('timeoutSeconds') ?? '0');
    const timer = seconds > 0 ? setTimeout(() => response.end(), seconds * 1000) : undefined;
    response.on('close', () => {
      stop();
      clearTimeout(timer);
    });
  }

  return {
    storage,
    controllers,
    /** A watch is answered in the stream, if there is one. */
    answer(request: Sent, stream?: ServerResponse): Received {
      const url = new URL(request.path, 'http://localhost');
      try {
        const result = respond(request, url);
        if (!('resource' in result)) return format(result);
        if (!stream) throw methodNotAllowed();
        watch(result, url.searchParams, stream);
        return format({ code: 200, body: '' });
      } catch (error) {
        return format(
          error instanceof StatusError
            ? error
            : new StatusError(500, 'InternalError', `Internal error occurred: ${String(error)}`),
        );
      }
    },
  };
}

/** The API server for kubectl: plain HTTP on loopback. */
export async function startApiServer(): Promise<ApiServer> {
  const api = createApi();
  const serve = async (request: IncomingMessage, response: ServerResponse) => {
    const { code, contentType, body } = api.answer(
      {
        method: request.method ?? '',
        path: request.url ?? '/',
        body: await text(request),
        contentType: request.headers['content-type'],
        user: request.headers['impersonate-user'] as string | undefined,
      },
      response,
    );
    if (!response.headersSent) response.writeHead(code, { 'content-type': contentType }).end(body);
  };
  const server = createServer((request, response) => void serve(request, response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () =>
      new Promise((resolve) => {
        api.controllers.close();
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

const format = ({ code, body }: Answer): Received =>
  typeof body === 'string'
    ? { code, contentType: 'text/plain', body }
    : { code, contentType: 'application/json', body: JSON.stringify(body) };

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw badRequest(`the object provided is unrecognized: ${String(error)}`);
  }
}

/** The responses that need no permission. */
function publicResponse(path: string): object | string | undefined {
  if (path === '/version') return serverVersion;
  if (['/readyz', '/livez', '/healthz'].includes(path)) return 'ok';
  return discover(path);
}

const sortKey = ({ metadata: { namespace = '', name } }: KubeObject) => `${namespace}/${name}`;
