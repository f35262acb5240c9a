// A line to PostgreSQL that can be cut at the worst moment: when it has committed, and before anybody is told.
import { once } from 'node:events';
import { type AddressInfo, type Socket, connect, createServer } from 'node:net';
import { onTestFinished } from 'vitest';

export type Line = Awaited<ReturnType<typeof startLine>>;

export async function startLine(databaseUrl: string) {
  const { hostname, port } = new URL(databaseUrl);
  const ends = new Set<Socket>();
  let isMarked: (sent: Buffer) => boolean = () => false;
  let onCut: () => void = () => undefined;

  const server = createServer((near) => {
    const far = connect(Number(port), hostname);
    let isMute = false;
    near.on('data', (sent: Buffer) => {
      far.write(sent);
      if (!isMarked(sent)) return;
      isMarked = () => false;
      isMute = true;
    });
    far.on('data', (answer: Buffer) => {
      if (!isMute) near.write(answer);
      else if (answer.includes('COMMIT')) {
        near.destroy();
        far.destroy();
        onCut();
      }
    });
    for (const [end, other] of [
      [near, far],
      [far, near],
    ] as const) {
      ends.add(end);
      end.on('error', () => undefined);
      end.on('close', () => {
        ends.delete(end);
        other.destroy();
      });
    }
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => {
    for (const end of ends) end.destroy();
    server.close();
  });
  const url = new URL(databaseUrl);
  url.host = `127.0.0.1:${(server.address() as AddressInfo).port}`;

  return {
    url: url.href,
    /** The answer to the next commit of a change is lost, and the connection with it; resolves then. */
    loseNextCommit: () =>
      new Promise<void>((resolve) => {
        onCut = resolve;
        // The channel on which others are told goes with every commit, and with nothing else but the first word of a listener.
        isMarked = (sent) => sent.includes('steward_');
      }),
    /** All connections end at once, whatever they are at. */
    cut(): void {
      for (const end of ends) end.destroy();
    },
  };
}
