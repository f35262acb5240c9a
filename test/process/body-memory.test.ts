// The memory that a body takes, however it is cut: measured in a process of its own.
import { readFileSync, writeFileSync } from 'node:fs';
import { beforeEach, describe, expect, it } from 'vitest';
import { startProcess } from '../kit/process.ts';
import { type Kind, inChunks, kinds } from '../hard/bodies-kit.ts';
import { type Answer, type Wire, ask, openWire, write } from '../hard/wire.ts';

const maxMB = 10;
/** Without this, V8 takes up to 16 MB or more for short-lived objects, depending on how fast the bodies arrive. */
const nodeOptions = '--max-semi-space-size=1';
const password = 'a password for tests';

let server: ReturnType<typeof startProcess>;
let port: number;
let headers: { authorization: string };
beforeEach(async () => {
  server = startProcess({ ADMIN_PASSWORD: password, LOG_LEVEL: 'warn', NODE_OPTIONS: nodeOptions });
  port = Number(new URL(await server.listening).port);
  const signIn = await ask(
    port,
    write({
      method: 'POST',
      url: '/tokens/generateToken',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams({ username: 'admin', password }).toString(),
    }),
  );
  headers = { authorization: `Bearer ${(JSON.parse(signIn?.body ?? '') as { token: string }).token}` };
});

const fileOfProcess = (name: string) => `/proc/${server.child.pid}/${name}`;

/** Forgets the peak: from now on it is that of the present. */
function resetPeak(): void {
  writeFileSync(fileOfProcess('clear_refs'), '5');
}

/** The most memory that the process has had since the peak was reset. */
function peakMB(): number {
  return Number(/^VmHWM:\s*(\d+) kB$/m.exec(readFileSync(fileOfProcess('status'), 'utf8'))?.[1]) / 1024;
}

/** Sends until the server answers. */
async function send(wire: Wire, bytes: Buffer): Promise<void> {
  const pieceBytes = 64 * 1024;
  for (let at = 0; at < bytes.length && wire.answers.length === 0 && !wire.isClosed(); at += pieceBytes) {
    const piece = bytes.subarray(at, at + pieceBytes);
    await new Promise((resolve) => wire.socket.write(piece, resolve));
  }
}

/** All bodies are incomplete at the same time. */
async function sendTogether(kind: Kind, count: number, chunks: number): Promise<(Answer | undefined)[]> {
  const bytes = inChunks(kind, kind.body(chunks), 1, { headers, end: '' });
  const wires = Array.from({ length: count }, () => openWire(port));
  await Promise.all(wires.map((wire) => send(wire, bytes)));
  for (const wire of wires) wire.write('0\r\n\r\n');
  const answers = await Promise.all(wires.map((wire) => wire.answer()));
  for (const { socket } of wires) socket.destroy();
  return answers;
}

// Only Linux reports the memory of another process this way.
describe.runIf(process.platform === 'linux').each(kinds)('chunks of one byte, $name', (kind) => {
  it(`cost at most ${maxMB} MB, in ten bodies and in a large one`, async () => {
    await sendTogether(kind, 1, 20_000);
    for (const [count, chunks] of [
      [10, 20_000],
      [1, 100_000],
    ] as const) {
      resetPeak();
      const before = peakMB();
      for (const answer of await sendTogether(kind, count, chunks))
        expect(answer?.status).toBe(kind.name === 'SOAP' && count > 1 ? 413 : 400);
      expect(peakMB() - before, `${count} times ${chunks} chunks`).toBeLessThan(maxMB);
    }
  });
});
