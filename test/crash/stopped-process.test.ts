// One of three processes under load stops in the middle of a transaction: it is frozen, or its connections to the database hang. The
// other two keep accepting writes, and the stopped process recovers by itself.
import { expect, it } from 'vitest';
import { createDatabase } from '../kit/postgres.ts';
import { type Fleet, startClients, startFleet } from './fleet.ts';
import { changeSettings, register, startReceiver, webhooksPath } from './receiver.ts';
import { type Steward, connect, createRandom, pause, signInEverywhere } from './steward.ts';

const stoppedMs = 5_000;
/** The others accept every write before the process continues. `node bench/storage.js faults` measures how soon. */
const acceptedWithinMs = 3_500;
const endedWithinMs = 10_000;
const recoveredWithinMs = 3_000;
/** Longer than the lease of a process: what the stopped process had claimed is delivered by then. */
const settled = { timeout: 20_000, interval: 100 };

type Kind = 'event' | 'state';
type Write = { readonly kind: Kind; readonly startedAt: number; endedAt: number };

async function startLoadedFleet() {
  const random = createRandom();
  const { url } = await createDatabase();
  const query = await connect(url);
  const fleet = await startFleet(url, 3);
  const token = await signInEverywhere(fleet.running());
  const receiver = await startReceiver();
  await register(fleet.running(), token, receiver, 'Tested');
  await changeSettings(fleet.at(0), token, { notificationElapsedTimeInSeconds: '0' });
  const acknowledged: string[] = [];
  let events = 0;

  /** Sends one request. A change of an event is stored in the delivery queue, a change of the settings in the replicated state. */
  async function send(steward: Steward, kind: Kind, number: number): Promise<number> {
    const eventId = `event-${number}`;
    const [path, fields] =
      kind === 'event'
        ? ['publish', { changeType: 'Tested', payload: '{}', eventId }]
        : ['settings', { daysInPast: String(1 + (number % 365)) }];
    const answer = await steward.post(`${webhooksPath}/${path}`, fields, token, 30_000);
    if (answer.status === 200 && kind === 'event' && !acknowledged.includes(eventId))
      acknowledged.push(eventId);
    return answer.status;
  }

  /** Writes again and again; a refused write is repeated until it is accepted. */
  function startWriter(steward: Steward, kind: Kind) {
    const writes: Write[] = [];
    const { stop } = startClients(1, async ({ signal }) => {
      const write: Write = { kind, startedAt: Date.now(), endedAt: Infinity };
      writes.push(write);
      events += 1;
      const number = events;
      while ((await send(steward, kind, number)) !== 200) await pause(50, undefined, { signal });
      write.endedAt = Date.now();
      await pause(60 * random());
    });
    return { writes, stop };
  }

  const writers = fleet
    .running()
    .map((steward) => (['event', 'state'] as const).map((kind) => startWriter(steward, kind)));
  return {
    fleet,
    query,
    token,
    send: (steward: Steward, kind: Kind) => send(steward, kind, (events += 1)),
    /** The writes of clients of a process. */
    writesAt: (slot: number) => (writers[slot] ?? []).flatMap(({ writes }) => writes),
    /** Checks that every acknowledged event has arrived. */
    async finish(): Promise<void> {
      await Promise.all(writers.flat().map(({ stop }) => stop()));
      const missing = () => acknowledged.filter((id) => !receiver.arrivals.has(id));
      await expect.poll(missing, settled).toEqual([]);
      expect(receiver.badSignatures).toEqual([]);
      expect(fleet.loggedErrors()).toEqual([]);
    },
  };
}

type Loaded = Awaited<ReturnType<typeof startLoadedFleet>>;

/**
 * Stops a process while one of its transactions holds locks, which is the worst moment for the others. If it never waits for the client
 * within a transaction, there is no such moment, and any will do.
 */
async function stopInTransaction(
  { fleet, query }: Loaded,
  slot: number,
  { stop, resume }: { stop: () => void; resume: () => void },
): Promise<void> {
  const proxy = fleet.proxy(slot);
  const deadline = Date.now() + 3_000;
  while (Date.now() < deadline) {
    const begun = proxy.atNextTransaction(stop).then(() => true);
    if (!(await Promise.race([begun, pause(3_000, false)]))) break;
    const holders = await query(
      `select pid from pg_stat_activity where client_port = any($1::int[]) and backend_xid is not null
       and state like 'idle in transaction%'`,
      [proxy.ports()],
    );
    if (holders.length > 0) return;
    resume();
  }
  void proxy.atNextTransaction(() => undefined);
  stop();
}

/**
 * Checks that the clients of the other processes have not noticed that a process is stopped since `stoppedAt`. The limit is added to the
 * longest wait since `undisturbedSince`, because every write takes long on a busy machine.
 */
function expectUnaffected(
  { fleet, writesAt }: Loaded,
  stopped: number,
  { undisturbedSince, stoppedAt }: { undisturbedSince: number; stoppedAt: number },
): void {
  const until = stoppedAt + stoppedMs;
  const others = fleet.running().flatMap((_steward, slot) => (slot === stopped ? [] : writesAt(slot)));
  for (const kind of ['event', 'state'] as const) {
    const writes = others.filter((write) => write.kind === kind);
    const before = writes.filter((write) => write.startedAt > undisturbedSince && write.endedAt < stoppedAt);
    const meanwhile = writes.filter((write) => write.startedAt < until && write.endedAt > stoppedAt);
    const title = `the longest wait until a write is accepted (${kind})`;
    expect(longestWait(meanwhile), title).toBeLessThan(acceptedWithinMs + longestWait(before));
  }
}

function longestWait(writes: readonly Write[]): number {
  const waits = writes.map(({ startedAt, endedAt }) => Math.min(endedAt, Date.now()) - startedAt);
  return Math.max(0, ...waits);
}

it('the others accept writes while one process is frozen', { timeout: 120_000 }, async () => {
  const loaded = await startLoadedFleet();
  const { fleet } = loaded;
  for (const slot of [0, 1]) {
    const { child } = fleet.at(slot);
    const undisturbedSince = Date.now();
    await pause(500);
    await stopInTransaction(loaded, slot, {
      stop: () => child.kill('SIGSTOP'),
      resume: () => child.kill('SIGCONT'),
    });
    const stoppedAt = Date.now();
    await pause(stoppedMs);
    child.kill('SIGCONT');
    expectUnaffected(loaded, slot, { undisturbedSince, stoppedAt });
    const accept = () => loaded.send(fleet.at(slot), 'state');
    await expect.poll(accept, { timeout: recoveredWithinMs, interval: 50 }).toBe(200);
  }
  await loaded.finish();
});

const soap = `<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body>
  <GetServiceDescriptions xmlns="http://www.example.com/schemas/Product/10.0"/></s:Body></s:Envelope>`;

it('a process whose connections hang answers 503, and recovers', { timeout: 120_000 }, async () => {
  const loaded = await startLoadedFleet();
  const { fleet } = loaded;
  const [slot, steward] = [2, fleet.at(2)];
  const undisturbedSince = Date.now();
  await pause(500);
  let end: ReturnType<ReturnType<Fleet['proxy']>['hang']> = () => undefined;
  await stopInTransaction(loaded, slot, {
    stop: () => (end = fleet.proxy(slot).hang()),
    resume: () => end('continue'),
  });
  const stoppedAt = Date.now();

  /** Further requests, one after another without waiting for the answers. */
  const asked: Promise<{ status: number; ms: number }>[] = [];
  while (Date.now() < stoppedAt + stoppedMs) {
    const startedAt = Date.now();
    const answered = loaded.send(steward, asked.length % 2 === 0 ? 'event' : 'state');
    asked.push(answered.catch(() => 0).then((status) => ({ status, ms: Date.now() - startedAt })));
    const catalog = await steward.ask('/services', {
      method: 'POST',
      headers: { 'content-type': 'text/xml' },
      body: soap,
    });
    expect(catalog).toMatchObject({ status: 200 });
    await pause(200);
  }
  end('stay silent');
  expectUnaffected(loaded, slot, { undisturbedSince, stoppedAt });
  const accept = () => loaded.send(steward, 'state');
  await expect.poll(accept, { timeout: recoveredWithinMs, interval: 50 }).toBe(200);

  const answers = await Promise.all(asked);
  expect(answers.filter(({ status }) => status !== 200 && status !== 503)).toEqual([]);
  expect(answers.filter(({ ms }) => ms > endedWithinMs)).toEqual([]);
  expect(answers.filter(({ status }) => status === 503)).not.toEqual([]);
  await loaded.finish();
});
