// What our responses send is what Node's own would, until the server closes.
import { once } from 'node:events';
import { type Server, ServerResponse, createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createResponseClass } from '../../src/http/response.ts';

const length = (text: string) => ({ 'content-length': Buffer.byteLength(text) });
const accents = 'Übermaß, naïve, 東京';
const long = 'x'.repeat(200_000);

let calledBack = 0;
const answers: Record<string, (response: ServerResponse) => unknown> = {
  'a text': (response) => response.writeHead(200, length('hello')).end('hello'),
  'a text, as Fastify sends it': (response) =>
    response.writeHead(200, length('hello')).end('hello', null as never, null as never),
  'letters outside ASCII': (response) => response.writeHead(200, length(accents)).end(accents),
  'a text in another encoding': (response) => response.writeHead(200).end('é', 'latin1'),
  'a long text': (response) => response.writeHead(200, length(long)).end(long),
  'an empty text': (response) => response.writeHead(200, length('')).end(''),
  nothing: (response) => response.writeHead(204).end(),
  bytes: (response) => response.writeHead(200, length('hello')).end(Buffer.from('hello')),
  'a text whose length nobody told': (response) => response.writeHead(200).end('hello'),
  'a text without a head': (response) => response.end('hello'),
  'a text in two parts': (response) => response.writeHead(200).write('hel') && response.end('lo'),
  'a text that calls back': (response) => response.writeHead(200).end('hello', () => (calledBack += 1)),
  'a text in an encoding that calls back': (response) =>
    response.writeHead(200).end('hello', 'utf8', () => (calledBack += 1)),
};
const names = Object.keys(answers);

let isClosing = false;
const untakenMs = 500;
const ours = createServer({ ServerResponse: createResponseClass({ isClosing: () => isClosing, untakenMs }) });
const nodes = createServer({ ServerResponse });

beforeAll(async () => {
  for (const server of [ours, nodes]) {
    server.on('request', ({ url = '/' }, response) => {
      response.sendDate = false;
      answers[names[Number(url.slice(1))] ?? '']?.(response);
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
  }
});
afterAll(() => [ours, nodes].forEach((server) => server.close()));

/** All that comes back until the connection ends. */
async function ask(server: Server, requests: readonly string[]): Promise<string> {
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  socket.write(requests.map((line) => `${line} HTTP/1.1\r\nhost: localhost\r\n`).join('\r\n'));
  socket.write(isClosing ? '\r\n' : 'connection: close\r\n\r\n');
  return Buffer.concat((await socket.toArray()) as Buffer[]).toString('latin1');
}

describe('what is sent is what Node sends', () => {
  it.each(names)('%s', async (name) => {
    for (const method of ['GET', 'HEAD']) {
      const asked = [`${method} /${names.indexOf(name)}`];
      const answer = await ask(ours, asked);
      expect(answer).toMatch(/^HTTP\/1\.1 20[04] /);
      expect(answer).toBe(await ask(nodes, asked));
    }
  });

  it('who wants to be called back is', async () => {
    calledBack = 0;
    const asked = names.flatMap((name, n) => (name.includes('calls back') ? `GET /${n}` : []));
    for (const line of asked) await ask(ours, [line]);
    expect(calledBack).toBe(asked.length);
  });

  it('answers to requests that came at once, in their order', async () => {
    const asked = names.map((_name, n) => `GET /${n}`);
    const answer = await ask(ours, asked);
    expect(answer.match(/HTTP\/1\.1 20/g)).toHaveLength(asked.length);
    expect(answer).toBe(await ask(nodes, asked));
  });
});

describe('clients who do not take their answers', () => {
  const connections = () => new Promise((resolve) => ours.getConnections((_error, count) => resolve(count)));
  const open = (count: number) => {
    const socket = connect((ours.address() as AddressInfo).port, '127.0.0.1').pause();
    const request = `GET /${names.indexOf('a long text')} HTTP/1.1\r\nhost: localhost\r\n\r\n`;
    socket.write(request.repeat(count));
    return socket;
  };

  it('are let go of', async () => {
    await expect.poll(connections).toBe(0);
    const socket = open(60);
    await expect.poll(connections).toBe(1);
    await expect.poll(connections).toBe(0);
    socket.destroy();
  });

  it('are those who take nothing for a while, not those who are slow', async () => {
    const socket = open(60);
    let taken = 0;
    // Longer in all than nothing may move.
    const slowly = setInterval(() => {
      const part = socket.read() as Buffer | null;
      taken += part?.length ?? 0;
    }, untakenMs / 50);
    await expect.poll(() => taken, { timeout: 20 * untakenMs }).toBeGreaterThan(60 * long.length);
    clearInterval(slowly);
    expect(await connections()).toBe(1);
    socket.destroy();
  });
});

it('once the server is closing, an answer is the last of its connection', async () => {
  isClosing = true;
  for (const name of names) {
    const answer = await ask(ours, [`GET /${names.indexOf(name)}`]);
    expect(answer, name).toMatch(/^connection: close\r$/im);
  }
});
