// The memory that a body takes, however it is cut: measured in a process of its own.
import { readFileSync } from 'node:fs';
import { beforeEach, describe, expect, it } from 'vitest';
import { startProcess } from '../kit/process.ts';
import { type Kind, inChunks, kinds } from './bodies-kit.ts';
import { type Answer, type Wire, ask, openWire, write } from './wire.ts';

/** Of which V8 takes most for short-lived objects. */
const maxMB = 20;
const password = 'a password for tests';

let server: ReturnType<typeof startProcess>;
let port: number;
let headers: { authorization: string };
beforeEach(async () => {
  server = startProcess({ ADMIN_PASSWORD: password, LOG_LEVEL: 'warn' });
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

/** The most memory that the process has had. */
function peakMB(): number {
  const status = readFileSync(`/proc/${server.child.pid}/status`, 'utf8');
  return Number(/^VmHWM:\s*(\d+) kB$/m.exec(status)?.[1]) / 1024;
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
  it.each([
    [10, 20_000],
    [1, 100_000],
  ])(`cost at most ${maxMB} MB: %d times %d`, { timeout: 60_000 }, async (count, chunks) => {
    await sendTogether(kind, 1, 20_000);
    const before = peakMB();
    for (const answer of await sendTogether(kind, count, chunks))
      expect(answer?.status).toBe(kind.name === 'SOAP' && count > 1 ? 413 : 400);
    expect(peakMB() - before).toBeLessThan(maxMB);
  });
});
