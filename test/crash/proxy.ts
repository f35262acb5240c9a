// A proxy in front of PostgreSQL that can drop a connection after a commit and before its answer.
import { once } from 'node:events';
import { type AddressInfo, type Socket, connect, createServer } from 'node:net';
import { onTestFinished } from 'vitest';

export async function startProxy(databaseUrl: string) {
  const { hostname, port } = new URL(databaseUrl);
  const sockets = new Set<Socket>();
  let isChange: (sent: Buffer) => boolean = () => false;
  let onDropped: () => void = () => undefined;

  const server = createServer((client) => {
    const database = connect(Number(port), hostname);
    let dropsAnswer = false;
    client.on('data', (sent: Buffer) => {
      database.write(sent);
      if (!isChange(sent)) return;
      isChange = () => false;
      dropsAnswer = true;
    });
    database.on('data', (answer: Buffer) => {
      if (!dropsAnswer) client.write(answer);
      else if (answer.includes('COMMIT')) {
        client.destroy();
        database.destroy();
        onDropped();
      }
    });
    for (const [socket, other] of [
      [client, database],
      [database, client],
    ] as const) {
      sockets.add(socket);
      socket.on('error', () => undefined);
      socket.on('close', () => {
        sockets.delete(socket);
        other.destroy();
      });
    }
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const url = new URL(databaseUrl);
  url.host = `127.0.0.1:${(server.address() as AddressInfo).port}`;

  return {
    url: url.href,
    /** Drops the connection instead of the answer to the next commit of a change; resolves when that has happened. */
    loseNextCommit: () =>
      new Promise<void>((resolve) => {
        onDropped = resolve;
        // Every commit of a change notifies the channel `steward_…`; otherwise only a new listener sends this name.
        isChange = (sent) => sent.includes('steward_');
      }),
    /** Closes all connections at once. */
    cut(): void {
      for (const socket of sockets) socket.destroy();
    },
  };
}
