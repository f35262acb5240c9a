// A proxy in front of PostgreSQL that can cut connections, stop forwarding, and drop a connection after a commit
// and before its answer.
import { once } from 'node:events';
import { type AddressInfo, type Socket, connect, createServer } from 'node:net';
import { onTestFinished } from 'vitest';

/** The end of an answer: PostgreSQL is ready for the next query, in an open transaction or outside of one. */
const readyInTransaction = Buffer.from('Z\0\0\0\u0005T', 'latin1');
const readyOutside = Buffer.from('Z\0\0\0\u0005I', 'latin1');
const endsWith = (answer: Buffer, end: Buffer) => answer.subarray(-end.length).equals(end);

type Connection = { readonly client: Socket; readonly database: Socket };

export type Proxy = Awaited<ReturnType<typeof startProxy>>;

export async function startProxy(databaseUrl: string) {
  let target = new URL(databaseUrl);
  const connections = new Set<Connection>();
  let isHanging = false;
  let isChange: (sent: Buffer) => boolean = () => false;
  let onDropped: () => void = () => undefined;
  let onTransaction: () => void = () => undefined;

  const server = createServer((client) => {
    const database = connect(Number(target.port), target.hostname);
    const connection = { client, database };
    let dropsAnswer = false;
    client.on('data', (sent: Buffer) => {
      database.write(sent);
      if (!isChange(sent)) return;
      isChange = () => false;
      dropsAnswer = true;
    });
    database.on('data', (answer: Buffer) => {
      if (endsWith(answer, readyInTransaction)) onTransaction();
      if (isHanging) database.unshift(answer);
      else if (dropsAnswer && (answer.includes('COMMIT') || endsWith(answer, readyOutside))) {
        client.destroy();
        database.destroy();
        onDropped();
      } else client.write(answer);
    });
    connections.add(connection);
    for (const [socket, other] of [
      [client, database],
      [database, client],
    ] as const) {
      if (isHanging) socket.pause();
      socket.on('error', () => undefined);
      socket.on('close', () => {
        connections.delete(connection);
        other.destroy();
      });
    }
  });

  function cut(): void {
    for (const { client, database } of connections) {
      client.destroy();
      database.destroy();
    }
  }

  await once(server.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => {
    cut();
    server.close();
  });
  const url = new URL(databaseUrl);
  url.host = `127.0.0.1:${(server.address() as AddressInfo).port}`;

  return {
    url: url.href,
    /** Closes all connections at once. */
    cut,
    /** Connects to another server from now on, as after a failover. */
    switchTo(otherUrl: string): void {
      target = new URL(otherUrl);
      cut();
    },
    /** The ports of its connections to PostgreSQL. */
    ports: () => [...connections].map(({ database }) => database.localPort ?? 0),
    /**
     * Drops the connection instead of the answer to the next commit of a change that contains all the texts; resolves
     * when that has happened.
     */
    loseNextCommit: (...texts: readonly string[]) =>
      new Promise<void>((resolve) => {
        onDropped = resolve;
        isChange = (sent) => texts.every((text) => sent.includes(text));
      }),
    /** Calls `act` when a transaction has begun, before its client reads the answer; resolves after that. */
    atNextTransaction: (act: () => void) =>
      new Promise<void>((resolve) => {
        onTransaction = () => {
          onTransaction = () => undefined;
          act();
          resolve();
        };
      }),
    /**
     * Accepts connections and forwards nothing, until the returned function is called. The connections from before
     * then continue, or stay silent for ever, as when a router has forgotten them.
     */
    hang(): (before: 'continue' | 'stay silent') => void {
      isHanging = true;
      const hanging = new Set(connections);
      for (const { client, database } of hanging) {
        client.pause();
        database.pause();
      }
      return (before) => {
        isHanging = false;
        for (const connection of connections) {
          if (before === 'stay silent' && hanging.has(connection)) continue;
          connection.client.resume();
          connection.database.resume();
        }
      };
    },
  };
}
