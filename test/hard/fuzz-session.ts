// Starts a server with sample data of every kind, and sends it raw requests.
import { laterVersions } from '../kit/sample-manifest.ts';
import { type Server, startListening } from '../kit/server.ts';
import type { FuzzRequest } from './fuzz-http.ts';
import { type Answer, type Wire, openWire, write } from './wire.ts';

/** `connection`: the open keep-alive connection. */
export type Target = Server & { port: number; connection?: Wire | undefined };

/**
 * How long the server may be silent before the fake clock advances, the client ends its side, and the request
 * counts as unanswered. Counted in ticks of the event loop: while the machine delays this process, no time passes.
 */
const silenceMs = { beforeAdvance: 250, beforeEnd: 25, beforeAbort: 5000 };

export async function startTarget(env: Record<string, string>): Promise<Target> {
  const server = await startListening({ env });
  const token = server.token('administrator');
  const hook = {
    name: 'first',
    hookUrl: 'https://hooks.example/in',
    changeTypes: '*',
    service: 'World.MapServer',
  };
  const license = { itemFile: { name: 'license.json', content: '{}' } };
  const answers = [
    await server.postParts('/admin/uploads/upload', license, token),
    await server.post('/admin/services/webhooks/create', { token, ...hook, service: '' }),
    await server.post('/admin/services/webhooks/create', { token, ...hook, name: 'second' }),
    await server.post('/admin/services/webhooks/publish', { token, changeType: 'Tested', eventId: 'e1' }),
    await server.post('/admin/services/createFolder', { token, folderName: 'Empty' }),
    await server.post('/admin/system/upgrades/upgrade', {
      token,
      versionManifest: JSON.stringify({ id: laterVersions[0]?.id }),
    }),
  ];
  const failed = answers.find(({ statusCode }) => statusCode !== 200);
  if (failed) throw new Error(failed.body);
  await server.runtime.advance(60_000);
  return server;
}

export async function stopTarget({ http, connection, close }: Target): Promise<void> {
  connection?.socket.destroy();
  // Without this, close would wait for requests that never got a response.
  http.server.closeAllConnections();
  await close();
}

/**
 * The ids that addresses can contain. They are the same in every session, because the fake runtime generates the
 * same ids.
 */
export async function idsIn({ get, token }: Target): Promise<Record<string, string>> {
  type Listed = Record<string, Record<string, string>[]>;
  const listed = async (path: string) =>
    (await get(`/admin/${path}?token=${token('administrator')}`)).json<Listed>();
  const idsOf = (list: Record<string, string>[] = [], name = 'id') =>
    list.map((entry) => entry[name]).join('¦');
  const { webhooks } = await listed('services/webhooks');
  return {
    webhook: idsOf(webhooks),
    delivery: idsOf((await listed(`services/webhooks/${webhooks?.[0]?.id ?? ''}/deliveries`)).deliveries),
    job: idsOf((await listed('system/jobs')).jobs),
    itemID: idsOf((await listed('uploads')).items, 'itemID'),
  };
}

/** Whether the request is complete, so that the server must answer it. Node closes CONNECT without a response. */
export function isComplete({ method, headers }: FuzzRequest): boolean {
  const framing = ['content-length', 'transfer-encoding', 'expect', 'connection', 'upgrade', 'host'];
  return method !== 'CONNECT' && framing.every((name) => !(name in headers));
}

/**
 * Returns undefined if the server closed the connection without a response. Complete requests share one connection,
 * so that unread bytes of one would corrupt the response to the next.
 */
export async function send(target: Target, request: FuzzRequest): Promise<Answer | undefined> {
  const isKept = isComplete(request);
  const open = target.connection?.isClosed() === false ? target.connection : undefined;
  const wire = (isKept ? open : undefined) ?? openWire(target.port);
  const number = wire.answers.length;
  if (number !== wire.sent()) throw new Error('There are more responses than requests.');
  wire.write(write(request, isKept), request.method === 'HEAD');
  let silentMs = 0;
  const timer = setInterval(() => {
    silentMs += 1;
    // The server waits for bytes that an incomplete request announces and never sends.
    if (silentMs === silenceMs.beforeEnd && !isKept) wire.socket.end();
    // Some responses wait for a job or for the rest of a form until the fake clock reaches their time limit.
    if (silentMs === silenceMs.beforeAdvance) void target.runtime.advance(61_000);
    if (silentMs === silenceMs.beforeAbort) wire.socket.destroy();
  }, 1);
  const answer = await wire.answer(number);
  clearInterval(timer);
  target.connection = isKept && answer?.headers.connection !== 'close' ? wire : undefined;
  if (target.connection !== wire) wire.socket.destroy();
  return answer;
}
