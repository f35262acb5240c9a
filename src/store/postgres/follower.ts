// The follower keeps the copy up with the database, and this process known to the others as alive. A notification is only a hint:
// looking now and then is what counts.
import type { Mutex } from '../../lib/async.ts';
import type { Tasks } from '../../tasks.ts';
import type { Runtime } from '../../runtime.ts';
import type { Copy } from '../copy.ts';
import type { Queue } from '../transaction.ts';
import { type Database, query, soonMs } from './database.ts';
import type { Peers } from './peers.ts';
import type { Replica } from './replica.ts';

const lookEveryMs = 500;
const sayAliveEveryMs = 2_000;
const pruneEveryMs = 60_000;

/** Changes are listed for so long; whoever was away for longer reads everything anew. */
const changesKeptMs = 300_000;

export type FollowerOptions = {
  readonly database: Database;
  readonly copy: Copy;
  readonly replica: Replica;
  readonly peers: Peers;
  readonly queues: readonly Queue<never>[];
  readonly lane: Mutex;
  readonly tasks: Tasks;
  readonly runtime: Pick<Runtime, 'now' | 'sleep'>;
  readonly channel: string;
  readonly self: string;
  /** The database has answered. */
  readonly onContact: () => void;
};

export type Follower = {
  /** Brings the copy up to date; whoever listens is told if it was not. */
  look: () => Promise<void>;
  start: () => void;
};

export function createFollower(options: FollowerOptions): Follower {
  const { database, copy, replica, peers, lane, tasks, runtime } = options;

  function tell(hasFreedRows: boolean): void {
    if (hasFreedRows) for (const { name } of options.queues) copy.touch(name);
    copy.tell();
  }

  /** One that has not begun yet; whoever asks meanwhile shares it. */
  let nextLook: Promise<void> | undefined;

  function look(): Promise<void> {
    nextLook ??= lane(() => {
      nextLook = undefined;
      return lookNow();
    });
    return nextLook;
  }

  async function lookNow(): Promise<void> {
    return database.use(async (client) => {
      const [{ rows }, havePeersChanged] = await Promise.all([
        query<{ version: number }>(client, 'select version from clock', [], soonMs),
        peers.look(client),
      ]);
      const hasNews = rows[0]?.version !== replica.seen;
      if (hasNews) {
        await replica.begin(client, 'unlocked');
        await query(client, 'commit');
      }
      options.onContact();
      if (hasNews || havePeersChanged) tell(havePeersChanged);
    });
  }

  async function keepListening(stopping: AbortSignal): Promise<void> {
    while (!stopping.aborted) {
      const onNotice = (from: string) => {
        if (from !== options.self) tasks.start('store hint', look);
      };
      await database.listen(options.channel, onNotice, stopping).catch(() => undefined);
      await runtime.sleep(lookEveryMs, stopping);
    }
  }

  const milestones: { readonly at: number; readonly version: number }[] = [];

  async function prune(): Promise<void> {
    const at = runtime.now();
    milestones.push({ at, version: replica.seen });
    let old: number | undefined;
    while ((milestones[0]?.at ?? at) <= at - changesKeptMs) old = milestones.shift()?.version;
    if (old === undefined) return;
    await database.ask(
      `with pruned as (update clock set pruned_to = greatest(pruned_to, $1))
       delete from changes where version <= $1`,
      [old],
    );
  }

  return {
    look,
    start() {
      tasks.every('store look', lookEveryMs, look);
      tasks.every('store lease', sayAliveEveryMs, async () => {
        await peers.keepAlive();
        // Rows that were given free may be due already, and nobody else tells of them.
        if (options.queues.some(({ name }) => replica.unfinished(name) > 0)) tell(true);
      });
      tasks.every('store prune', pruneEveryMs, prune);
      tasks.start('store listening', keepListening);
    },
  };
}
