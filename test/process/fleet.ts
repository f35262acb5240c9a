// Several servers on one database, each behind a proxy of its own, and clients that publish events through all of them.
import { expect, onTestFinished } from 'vitest';
import { type Proxy, startProxy } from './proxy.ts';
import { webhooksPath } from './receiver.ts';
import { type Answer, type Steward, type StewardProcess, pause } from './steward.ts';

type Env = Record<string, string>;

/** `startSteward` for processes, `startInProcess` for servers in this process. */
export type Start<S extends Steward> = (storeUrl: string, env: Env) => Promise<S>;

/** Calls the function when the process of the slot comes to a named point of its work, and resolves after that. */
export type Point = (slot: number, act: () => void) => Promise<unknown>;

export class Fleet<S extends Steward = Steward> {
  /** Every server that was ever started. */
  readonly all: S[] = [];
  readonly #slots: (S | undefined)[] = [];
  readonly #proxies: Proxy[] = [];
  readonly #url: string;
  readonly #start: Start<S>;
  readonly #openRequests = new Map<S, Set<Promise<Answer>>>();
  #turn = 0;

  constructor(url: string, start: Start<S>) {
    this.#url = url;
    this.#start = start;
  }

  proxy(slot: number): Proxy {
    return this.#proxies[slot] as Proxy;
  }

  at(slot: number): S {
    return this.#slots[slot] as S;
  }

  running(): S[] {
    return this.#slots.filter((steward) => steward !== undefined);
  }

  /** Sends a request to the running servers in turn. Undefined if none runs. */
  async post(
    path: string,
    fields: Record<string, string | Blob>,
    token: string,
    withinMs = 30_000,
    headers: Record<string, string> = {},
  ): Promise<Answer | undefined> {
    const running = this.running();
    this.#turn += 1;
    const steward = running[this.#turn % running.length];
    if (!steward) return undefined;
    const answered = steward.post(path, fields, token, withinMs, headers);
    const open = this.#openRequests.get(steward) ?? new Set();
    this.#openRequests.set(steward, open.add(answered));
    try {
      return await answered;
    } finally {
      open.delete(answered);
    }
  }

  /** Starts a server in a new slot. */
  async join(env: Env = {}, start: Start<S> = this.#start): Promise<S> {
    const slot = this.#proxies.push(await startProxy(this.#url)) - 1;
    return this.start(slot, env, start);
  }

  /** Starts a server. It gets requests when it listens, in place of the one that had its slot before. */
  async start(slot: number, env: Env = {}, start: Start<S> = this.#start): Promise<S> {
    const steward = await start(this.proxy(slot).url, env);
    this.all.push(steward);
    this.#slots[slot] = steward;
    return steward;
  }

  async kill(this: Fleet<StewardProcess>, slot: number): Promise<void> {
    const victim = this.at(slot);
    victim.child.kill('SIGKILL');
    this.#slots[slot] = undefined;
    await victim.exited;
  }

  /** Kills the process that comes to the point first. Default: one of all running processes. Returns its slot. */
  async killAt(
    this: Fleet<StewardProcess>,
    point: Point,
    slots = this.running().map((steward) => this.#slots.indexOf(steward)),
  ): Promise<number> {
    let killed: Promise<void> | undefined;
    const first = await Promise.race(
      slots.map(async (slot) => {
        await point(slot, () => void (killed ??= this.kill(slot)));
        return slot;
      }),
    );
    await killed;
    return first;
  }

  /** Starts the successor first, so that the servers serve without a gap. */
  async replace(slot: number, env: Env = {}, start: Start<S> = this.#start): Promise<void> {
    const before = this.at(slot);
    await this.start(slot, env, start);
    await this.#drain(before);
  }

  /** Sends no more requests to the server, and stops it. */
  async stop(slot: number): Promise<void> {
    const steward = this.at(slot);
    this.#slots[slot] = undefined;
    await this.#drain(steward);
  }

  /** Stops the server when its requests are answered, as a load balancer does. */
  async #drain(steward: S): Promise<void> {
    await Promise.allSettled(this.#openRequests.get(steward) ?? new Set<Promise<Answer>>());
    await steward.stop();
  }

  loggedErrors(): string[] {
    return this.all.flatMap((steward) => steward.loggedErrors());
  }
}

/** Starts the servers side by side. */
export async function startFleet<S extends Steward>(
  start: Start<S>,
  url: string,
  count: number,
  env: Env = {},
): Promise<Fleet<S>> {
  const fleet = new Fleet(url, start);
  await Promise.all(Array.from({ length: count }, () => fleet.join(env)));
  return fleet;
}

export type Clients = {
  /** Waits for the turns that have begun. Throws if a turn has failed. */
  readonly stop: () => Promise<void>;
};

/**
 * Starts clients that take their turns again and again until they are stopped. The signal aborts a turn when the
 * test is over.
 */
export function startClients(
  count: number,
  takeTurn: (turn: { client: number; number: number; signal: AbortSignal }) => Promise<void>,
): Clients {
  const state = { isOver: false };
  const abort = new AbortController();
  onTestFinished(() => abort.abort());
  const { signal } = abort;
  async function run(client: number): Promise<void> {
    for (let number = 0; !state.isOver && !signal.aborted; number += 1)
      await takeTurn({ client, number, signal });
  }
  const work = Promise.all(Array.from({ length: count }, (_, client) => run(client)));
  work.catch(() => undefined);
  return {
    async stop() {
      state.isOver = true;
      await work;
    },
  };
}

export type PublisherOptions = {
  readonly changeType: string;
  readonly clients: number;
  /** The pause of a client between two events. */
  readonly pauseMs: number;
  /** The number of webhooks that get each event. */
  readonly deliveries: number;
  /** Whether the clients wait, given the number of acknowledged events. */
  readonly isHeldBack?: (acknowledged: number) => boolean;
  /** Whether a client may have to repeat a request because of a killed process or a refusal with 503. */
  readonly mayRepeat?: boolean;
};

/**
 * Publishes events with ids of their own. A client repeats the request at the next process until one has
 * acknowledged the event.
 */
export function startPublishers(fleet: Fleet, token: string, options: PublisherOptions) {
  const { changeType, clients, pauseMs, deliveries, isHeldBack, mayRepeat = true } = options;
  const acknowledged: string[] = [];
  const answeredWithinMs = mayRepeat ? 3_000 : 30_000;
  let repeats = 0;

  async function publish(eventId: string, signal: AbortSignal): Promise<void> {
    const fields = { changeType, payload: '{}', eventId };
    for (;;) {
      const answered = fleet.post(`${webhooksPath}/publish`, fields, token, answeredWithinMs);
      const answer = await (mayRepeat ? answered.catch(() => undefined) : answered);
      if (answer && !(mayRepeat && answer.status === 503)) {
        expect(answer).toMatchObject({ status: 200, body: { eventId, deliveries } });
        acknowledged.push(eventId);
        return;
      }
      repeats += 1;
      await pause(100, undefined, { signal });
    }
  }
  const { stop } = startClients(clients, async ({ client, number, signal }) => {
    if (isHeldBack?.(acknowledged.length) !== true)
      await publish(`${changeType}-${client}-${number}`, signal);
    await pause(pauseMs);
  });
  return { acknowledged, stop, repeats: () => repeats };
}

/** Creates folders, a change of the replicated state. With `mayRepeat`, requests may be refused or lost. */
export function startFolderClient(fleet: Fleet, token: string, mayRepeat: boolean) {
  const acknowledged: string[] = [];
  const { stop } = startClients(1, async ({ number }) => {
    const folderName = `Folder${number}`;
    const answered = fleet.post('/admin/services/createFolder', { folderName }, token);
    const status = (await (mayRepeat ? answered.catch(() => undefined) : answered))?.status;
    if (status === 200) acknowledged.push(folderName);
    else expect(mayRepeat ? [503, undefined] : []).toContain(status);
    await pause(50);
  });
  return { acknowledged, stop };
}

/** The folders of the client, in order. */
export async function listFolders(steward: Steward, token: string): Promise<string[]> {
  const { body } = await steward.get('/admin/services', token);
  return (body.folders as string[]).filter((name) => name.startsWith('Folder')).sort();
}
