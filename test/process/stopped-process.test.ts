// One of three processes under load stops in the middle of a transaction: it is frozen, or its connections to the
// database hang. The other two keep accepting writes, and the stopped process recovers by itself.
import { expect, it } from 'vitest';
import { impatientAddress } from '../kit/postgres.ts';
import { type Fleet, startClients, startFleet } from './fleet.ts';
import { changeSettings, register, startReceiver, webhooksPath } from './receiver.ts';
import {
  type Client,
  connect,
  createSeededDatabase,
  pause,
  signInEverywhere,
  startSteward,
} from './steward.ts';

/** The others accept this many writes of each kind while the process is stopped. */
const acceptedWrites = 3;
/** What the stopped process had claimed is delivered after its lease. */
const settled = { timeout: 60_000, interval: 100 };

type Kind = 'event' | 'state';
type Writer = { readonly kind: Kind; readonly accepted: () => number };

async function startLoadedFleet() {
  const { url } = await createSeededDatabase();
  const query = await connect(url);
  const fleet = await startFleet(startSteward, impatientAddress(url), 3);
  const token = await signInEverywhere(fleet.running());
  const receiver = await startReceiver();
  await register(fleet.running(), token, receiver, 'Tested');
  await changeSettings(fleet.at(0), token, { notificationElapsedTimeInSeconds: '0' });
  const acknowledged: string[] = [];
  let events = 0;

  /**
   * Sends one request. A change of an event is stored in the delivery queue, a change of the settings in the
   * replicated state.
   */
  async function send(steward: Client, kind: Kind, number: number): Promise<number> {
    const eventId = `event-${number}`;
    const [path, fields] =
      kind === 'event'
        ? ['publish', { changeType: 'Tested', payload: '{}', eventId }]
        : ['settings', { daysInPast: String(1 + (number % 365)) }];
    const answer = await steward.post(`${webhooksPath}/${path}`, fields, token);
    if (answer.status === 200 && kind === 'event' && !acknowledged.includes(eventId))
      acknowledged.push(eventId);
    return answer.status;
  }

  /** Writes again and again; a refused write is repeated until it is accepted. */
  function startWriter(steward: Client, kind: Kind) {
    let accepted = 0;
    const { stop } = startClients(1, async ({ signal }) => {
      events += 1;
      const number = events;
      while ((await send(steward, kind, number)) !== 200) await pause(50, undefined, { signal });
      accepted += 1;
      await pause(100);
    });
    return { kind, accepted: () => accepted, stop };
  }

  const writers = fleet
    .running()
    .map((steward) => (['event', 'state'] as const).map((kind) => startWriter(steward, kind)));
  return {
    fleet,
    query,
    token,
    send: (steward: Client, kind: Kind) => send(steward, kind, (events += 1)),
    /** The clients of the process that write. */
    writersAt: (slot: number): readonly Writer[] => writers[slot] ?? [],
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

/** Stops a process while one of its transactions holds locks, which is the worst moment for the others. */
async function stopInTransaction(
  { fleet, query }: Loaded,
  slot: number,
  { stop, resume }: { stop: () => void; resume: () => void },
): Promise<void> {
  const proxy = fleet.proxy(slot);
  for (;;) {
    await proxy.atNextTransaction(stop);
    const holders = await query(
      `select pid from pg_stat_activity where client_port = any($1::int[]) and backend_xid is not null
       and state like 'idle in transaction%'`,
      [proxy.ports()],
    );
    if (holders.length > 0) return;
    resume();
  }
}

/**
 * Waits until every client of the other processes has had further writes accepted. The process stays stopped until
 * then.
 */
async function expectUnaffected({ fleet, writersAt }: Loaded, stopped: number): Promise<void> {
  const others = fleet.running().flatMap((_steward, slot) => (slot === stopped ? [] : writersAt(slot)));
  // One write of a client may have been accepted before the process stopped, and be counted after it.
  const wanted = others.map(({ kind, accepted }) => ({
    kind,
    accepted,
    count: accepted() + 1 + acceptedWrites,
  }));
  const missing = () => wanted.filter(({ accepted, count }) => accepted() < count).map(({ kind }) => kind);
  await expect.poll(missing, settled).toEqual([]);
}

it('the others accept writes while one process is frozen', async () => {
  const loaded = await startLoadedFleet();
  const { fleet } = loaded;
  for (const slot of [0, 1]) {
    const { child } = fleet.at(slot);
    await stopInTransaction(loaded, slot, {
      stop: () => child.kill('SIGSTOP'),
      resume: () => child.kill('SIGCONT'),
    });
    await expectUnaffected(loaded, slot);
    child.kill('SIGCONT');
    await expect.poll(() => loaded.send(fleet.at(slot), 'state'), settled).toBe(200);
  }
  await loaded.finish();
});

it('a process whose connections hang answers 503, and recovers', async () => {
  const loaded = await startLoadedFleet();
  const { fleet } = loaded;
  const [slot, steward] = [2, fleet.at(2)];
  let end: ReturnType<ReturnType<Fleet['proxy']>['hang']> = () => undefined;
  await stopInTransaction(loaded, slot, {
    stop: () => (end = fleet.proxy(slot).hang()),
    resume: () => end('continue'),
  });

  // All of them get an answer while the connections hang.
  const answers: number[] = [];
  for (let round = 0; round < 5; round += 1) {
    const kinds = ['event', 'state'] as const;
    answers.push(...(await Promise.all(kinds.map((kind) => loaded.send(steward, kind)))));
    expect(await steward.readCatalog()).toMatchObject({ status: 200 });
  }
  expect(answers.filter((status) => status !== 200 && status !== 503)).toEqual([]);
  expect(answers).toContain(503);
  await expectUnaffected(loaded, slot);
  end('stay silent');
  await expect.poll(() => loaded.send(steward, 'state'), settled).toBe(200);
  await loaded.finish();
});
