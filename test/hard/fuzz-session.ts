// A server to be hostile to: furnished with something of every kind, and asked over bare connections.
import { builtInManifest } from '../../src/upgrades/built-in-manifest.ts';
import type { FuzzRequest } from './fuzz-http.ts';
import { type Server, startServer } from '../kit/server.ts';
import { type Answer, type Wire, openWire, write } from './wire.ts';

export type Target = Server & { port: number; kept?: Wire | undefined };

const silenceMs = { beforeTimePasses: 250, beforeGoingAway: 25, inAll: 5000 };

export async function startTarget(env: Record<string, string>): Promise<Target> {
  const server = await startServer({ env });
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
      versionManifest: JSON.stringify({ id: builtInManifest[0]?.id }),
    }),
  ];
  const failed = answers.find(({ statusCode }) => statusCode !== 200);
  if (failed) throw new Error(failed.body);
  await server.runtime.advance(60_000);
  return { ...server, port: Number(new URL(await server.listen()).port) };
}

export async function stopTarget({ http, kept, close }: Target): Promise<void> {
  kept?.socket.destroy();
  // A request that is never answered would be waited for.
  http.server.closeAllConnections();
  await close();
}

/** What can be named in an address: the same in every session, because the fake runtime gives out the same ids. */
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

/** Whether its bytes are all there, so that it has a right to an answer. Node closes CONNECT without one. */
export function isHonest({ method, headers }: FuzzRequest): boolean {
  const aboutBytes = ['content-length', 'transfer-encoding', 'expect', 'connection', 'upgrade', 'host'];
  return method !== 'CONNECT' && aboutBytes.every((name) => !(name in headers));
}

/**
 * Undefined when the connection was closed without an answer. Honest requests follow one another on one connection, so that
 * what is left of one would show in the answer to the next.
 */
export async function send(target: Target, request: FuzzRequest): Promise<Answer | undefined> {
  const isKept = isHonest(request);
  const kept = target.kept?.isClosed() === false ? target.kept : undefined;
  const wire = (isKept ? kept : undefined) ?? openWire(target.port);
  const number = wire.answers.length;
  if (number !== wire.asked()) throw new Error('There are more answers than requests.');
  wire.write(write(request, isKept), request.method === 'HEAD');
  const timers = [
    // Some wait for a job, or for a form that never comes: their time passes only here.
    setTimeout(() => void target.runtime.advance(61_000), silenceMs.beforeTimePasses),
    setTimeout(() => wire.socket.destroy(), silenceMs.inAll),
    // Who announces more than follows is waited for until it goes away.
    ...(isKept ? [] : [setTimeout(() => wire.socket.end(), silenceMs.beforeGoingAway)]),
  ];
  const answer = await wire.answer(number);
  for (const timer of timers) clearTimeout(timer);
  target.kept = isKept && answer?.headers.connection !== 'close' ? wire : undefined;
  if (target.kept !== wire) wire.socket.destroy();
  return answer;
}
