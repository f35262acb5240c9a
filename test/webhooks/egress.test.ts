// Outgoing requests reach no address that is not allowed, however it is spelled or resolved; what an answer may do to us.
import { once } from 'node:events';
import { createServer as createHttpServer } from 'node:http';
import {
  type AddressInfo,
  BlockList,
  type Server,
  type Socket,
  connect,
  createServer,
  setDefaultAutoSelectFamily,
} from 'node:net';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { createEgress, keptBytes, readBytes } from '../../src/webhooks/egress.ts';
import { isForbidden, problemOfReceiver, receiverOf } from '../../src/webhooks/receiver.ts';
import { type Resolve, findInHosts } from '../../src/webhooks/resolver.ts';

const NEVER = new AbortController().signal;
const CLOSED = 'The connection was closed before the answer was complete.';
const INVALID = 'The answer is not valid HTTP.';

function allow(...ranges: string[]): BlockList {
  const list = new BlockList();
  for (const range of ranges) {
    const [address = '', bits] = range.split('/');
    list.addSubnet(address, Number(bits), address.includes(':') ? 'ipv6' : 'ipv4');
  }
  return list;
}

function outgoing(url: string) {
  return { url, headers: { 'webhook-id': 'e1' }, body: '{"id":"e1"}' };
}

function egressTo(allowed: BlockList, resolve?: Resolve) {
  const egress = createEgress(allowed, resolve);
  onTestFinished(egress.close);
  return egress;
}

async function listen(server: Server, host?: string): Promise<number> {
  server.listen(0, host);
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

/** A receiver on 127.0.0.1 that is left with each connection; `sockets` are all it has seen. */
async function startReceiver(welcome: (socket: Socket) => void = (socket) => socket.resume()) {
  const sockets: Socket[] = [];
  const server = createServer((socket) => {
    sockets.push(socket);
    socket.on('error', () => undefined);
    welcome(socket);
  });
  const port = await listen(server, '127.0.0.1');
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return { port, sockets, url: `http://127.0.0.1:${port}/hook/secret?key=secret` };
}

/** A receiver that answers every request with these bytes. */
function startAnswering(answer: string | Buffer, end = false) {
  return startReceiver((socket) => {
    socket.on('data', () => {
      if (end) socket.end(answer);
      else socket.write(answer);
    });
  });
}

async function expectClosed(sockets: Socket[], count: number): Promise<void> {
  for (const socket of sockets) {
    if (!socket.closed) await new Promise((closed) => socket.once('close', closed));
  }
  expect(sockets.length).toBe(count);
}

const LOCAL = allow('127.0.0.1/32');

// On all addresses of the machine, and of both families where there are two.
let visits = 0;
let port = 0;
const canary = createHttpServer((_, reply) => void reply.end('seen'));
canary.on('connection', () => (visits += 1));

beforeAll(async () => {
  port = await listen(canary);
});

afterAll(() => {
  canary.closeAllConnections();
  canary.close();
});

/** Connections are accepted in their order, so what came before this one has been counted after it. */
async function expectNoVisit(): Promise<void> {
  const own = connect(port, '127.0.0.1');
  await once(canary, 'connection');
  own.destroy();
  expect(visits).toBe(1);
}

async function expectRefusal(sent: Promise<unknown>, message: string): Promise<void> {
  await expect(sent).rejects.toThrow(new Error(message));
  await expectNoVisit();
}

describe('an address that is not allowed', () => {
  type Spelling = [host: string, address: string];

  const LOOPBACK: Spelling[] = [
    ['127.0.0.1', '127.0.0.1'],
    ['127.0.0.1.', '127.0.0.1'],
    ['127.1', '127.0.0.1'],
    ['127.0.1', '127.0.0.1'],
    ['2130706433', '127.0.0.1'],
    ['0x7f000001', '127.0.0.1'],
    ['0X7F000001', '127.0.0.1'],
    ['0x7f.1', '127.0.0.1'],
    ['0x7f.0x0.0x0.0x1', '127.0.0.1'],
    ['0177.0.0.1', '127.0.0.1'],
    ['017700000001', '127.0.0.1'],
    ['00000177.00.00.01', '127.0.0.1'],
    ['127.0.0.0x1.', '127.0.0.1'],
    ['①②⑦.⓪.⓪.①', '127.0.0.1'],
    ['１２７.０.０.１', '127.0.0.1'],
    ['127。0。0。1', '127.0.0.1'],
    ['127%2e0%2e0%2e1', '127.0.0.1'],
    ['%31%32%37.0.0.1', '127.0.0.1'],
    ['[::1]', '::1'],
    ['[0:0:0:0:0:0:0:1]', '::1'],
    ['[0000::0001]', '::1'],
    ['[::0.0.0.1]', '::1'],
    ['127.0.0.2', '127.0.0.2'],
    ['127.255.255.254', '127.255.255.254'],
    ['0.0.0.0', '0.0.0.0'],
    ['0', '0.0.0.0'],
    ['[::]', '::'],
    ['[::ffff:127.0.0.1]', '::ffff:7f00:1'],
    ['[::FFFF:7F00:0001]', '::ffff:7f00:1'],
    ['[0:0:0:0:0:ffff:7f00:1]', '::ffff:7f00:1'],
    ['[::ffff:0:127.0.0.1]', '::ffff:0:7f00:1'],
    ['[::127.0.0.1]', '::7f00:1'],
  ];

  const SPECIAL: Spelling[] = [
    ['0.1.2.3', '0.1.2.3'],
    ['10.0.0.1', '10.0.0.1'],
    ['0xa000001', '10.0.0.1'],
    ['100.64.0.1', '100.64.0.1'],
    ['100.127.255.254', '100.127.255.254'],
    ['169.254.169.254', '169.254.169.254'],
    ['2852039166', '169.254.169.254'],
    ['[::ffff:169.254.169.254]', '::ffff:a9fe:a9fe'],
    ['172.16.0.1', '172.16.0.1'],
    ['172.31.255.254', '172.31.255.254'],
    ['192.0.0.1', '192.0.0.1'],
    ['192.0.2.1', '192.0.2.1'],
    ['192.88.99.1', '192.88.99.1'],
    ['192.168.0.1', '192.168.0.1'],
    ['192.168.257', '192.168.1.1'],
    ['198.18.0.1', '198.18.0.1'],
    ['198.19.255.254', '198.19.255.254'],
    ['198.51.100.1', '198.51.100.1'],
    ['203.0.113.1', '203.0.113.1'],
    ['224.0.0.1', '224.0.0.1'],
    ['239.255.255.255', '239.255.255.255'],
    ['240.0.0.1', '240.0.0.1'],
    ['255.255.255.255', '255.255.255.255'],
    ['[::ffff:10.0.0.1]', '::ffff:a00:1'],
    ['[64:ff9b::127.0.0.1]', '64:ff9b::7f00:1'],
    ['[64:ff9b:1::1]', '64:ff9b:1::1'],
    ['[100::1]', '100::1'],
    ['[1fff::1]', '1fff::1'],
    ['[2001::1]', '2001::1'],
    ['[2001:1ff::1]', '2001:1ff::1'],
    ['[2001:db8::1]', '2001:db8::1'],
    ['[2002:7f00:1::]', '2002:7f00:1::'],
    ['[3fff::1]', '3fff::1'],
    ['[4000::1]', '4000::1'],
    ['[fc00::1]', 'fc00::1'],
    ['[fd12:3456::1]', 'fd12:3456::1'],
    ['[fe80::1]', 'fe80::1'],
    ['[fec0::1]', 'fec0::1'],
    ['[ff02::1]', 'ff02::1'],
  ];

  it.each([...LOOPBACK, ...SPECIAL])('is not reached as %s', async (host, address) => {
    visits = 0;
    const url = `http://${host}:${port}/`;
    expect(problemOfReceiver(url, allow())).toMatch(`must not point to the address ${address}: loopback,`);
    await expectRefusal(
      egressTo(allow()).post(outgoing(url), NEVER),
      `The address ${address} is not allowed.`,
    );
  });

  it('would have been: the canary sees what is allowed', async () => {
    const egress = egressTo(allow('127.0.0.1/32'));
    for (const [host] of LOOPBACK.filter(([, address]) => address === '127.0.0.1')) {
      const answer = await egress.post(outgoing(`http://${host}:${port}/`), NEVER);
      expect(answer.body.toString()).toBe('seen');
    }
  });

  type Resolution = [behaviour: string, addresses: string[], message: string];

  const RESOLUTIONS: Resolution[] = [
    ['loopback', ['127.0.0.1'], 'The address 127.0.0.1 is not allowed.'],
    ['loopback of IPv6', ['::1'], 'The address ::1 is not allowed.'],
    ['mapped loopback', ['::ffff:127.0.0.1'], 'The address ::ffff:127.0.0.1 is not allowed.'],
    [
      'mapped loopback in full',
      ['0:0:0:0:0:FFFF:7F00:1'],
      'The address 0:0:0:0:0:FFFF:7F00:1 is not allowed.',
    ],
    ['a private address', ['10.1.2.3'], 'The address 10.1.2.3 is not allowed.'],
    ['the metadata address', ['169.254.169.254'], 'The address 169.254.169.254 is not allowed.'],
    ['a unique local address', ['fd00::1'], 'The address fd00::1 is not allowed.'],
    ['a link-local address', ['fe80::1'], 'The address fe80::1 is not allowed.'],
    ['an address with a zone', ['2000::1%lo'], 'The address 2000::1%lo is not allowed.'],
    ['a mixture, loopback last', ['11.0.0.1', '127.0.0.1'], 'The address 127.0.0.1 is not allowed.'],
    ['a mixture, loopback first', ['127.0.0.1', '11.0.0.1'], 'The address 127.0.0.1 is not allowed.'],
    ['a mixture of families', ['2000::1', '127.0.0.1'], 'The address 127.0.0.1 is not allowed.'],
    ['nothing', [], 'The name hooks.example does not resolve.'],
    ['another name', ['localhost'], 'The address localhost is not allowed.'],
    ['an odd spelling', ['127.1'], 'The address 127.1 is not allowed.'],
    ['an empty address', [''], 'The address  is not allowed.'],
  ];

  it.each(RESOLUTIONS)('is not reached by a name that resolves to %s', async (_, addresses, message) => {
    visits = 0;
    const egress = egressTo(allow(), () => Promise.resolve(addresses));
    await expectRefusal(egress.post(outgoing(`http://hooks.example:${port}/`), NEVER), message);
  });

  it.each(['localhost', 'localhost.', 'LOCALHOST', 'a.localhost', 'ｌocalhost', '%6cocalhost.'])(
    'is not reached as %s',
    async (host) => {
      visits = 0;
      const url = `http://${host}:${port}/`;
      const { hostname } = new URL(url);
      expect(problemOfReceiver(url, allow())).toMatch(`must not point to ${hostname}: loopback,`);
      expect(problemOfReceiver(url, allow('127.0.0.0/8'))).toBeUndefined();
      expect(problemOfReceiver(url, allow('::1/128'))).toBeUndefined();
      // Whether these names resolve is the machine's affair; none of them may lead here.
      await expect(egressTo(allow()).post(outgoing(url), NEVER)).rejects.toThrow(/not allowed|not resolve/);
      await expectNoVisit();
    },
  );

  it('is not reached when the name cannot be resolved', async () => {
    visits = 0;
    const egress = egressTo(allow(), () => Promise.reject(new Error('EAI_AGAIN')));
    const sent = egress.post(outgoing(`https://hooks.example:${port}/`), NEVER);
    await expectRefusal(sent, 'The name hooks.example does not resolve.');
  });

  it('is not reached when a name comes to mean it', async () => {
    const addresses = ['127.0.0.1', '127.0.0.2', '127.0.0.1'];
    const { port, sockets } = await startAnswering('HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n', true);
    const egress = egressTo(LOCAL, () => Promise.resolve(addresses.splice(0, 1)));
    const post = () => egress.post(outgoing(`http://hooks.example:${port}/`), NEVER);
    expect((await post()).status).toBe(200);
    await expect(post()).rejects.toThrow(new Error('The address 127.0.0.2 is not allowed.'));
    expect((await post()).status).toBe(200);
    // One resolution for each connection: the address that was checked is the one that is used.
    expect([addresses.length, sockets.length]).toEqual([0, 2]);
  });

  it.each([true, false])('is kept from a connection that tries several addresses: %s', async (several) => {
    visits = 0;
    setDefaultAutoSelectFamily(several);
    onTestFinished(() => setDefaultAutoSelectFamily(true));
    const url = `http://hooks.example:${port}/`;
    const refused = egressTo(allow('::1/128'), () => Promise.resolve(['::1', '127.0.0.1']));
    await expectRefusal(refused.post(outgoing(url), NEVER), 'The address 127.0.0.1 is not allowed.');
    const reached = egressTo(LOCAL, () => Promise.resolve(['127.0.0.1']));
    expect((await reached.post(outgoing(url), NEVER)).body.toString()).toBe('seen');
  });
});

describe('isForbidden', () => {
  it.each([
    ...['1.0.0.0', '9.255.255.255', '11.0.0.0', '100.63.255.255', '100.128.0.0', '126.255.255.255'],
    ...['128.0.0.0', '169.253.255.255', '169.255.0.0', '172.15.255.255', '172.32.0.0', '192.0.1.0'],
    ...['192.167.255.255', '192.169.0.0', '198.17.255.255', '198.20.0.0', '223.255.255.255'],
    ...['::ffff:11.0.0.1', '2000::', '2001:200::', '2001:db9::', '2003::', '3ffe:ffff::'],
  ])('leaves %s open', (address) => {
    expect(isForbidden(address, allow())).toBe(false);
  });

  type Case = [range: string, inside: string[], outside: string[]];

  it.each<Case>([
    [
      '10.1.0.0/16',
      ['10.1.0.0', '10.1.255.255', '::ffff:10.1.2.3'],
      ['10.0.255.255', '10.2.0.0', '::ffff:10.2.0.0'],
    ],
    [
      '127.0.0.1/32',
      ['127.0.0.1', '::ffff:7f00:1'],
      ['127.0.0.0', '127.0.0.2', '::1', '::127.0.0.1', '::ffff:0:7f00:1'],
    ],
    ['0.0.0.0/0', ['10.0.0.1', '255.255.255.255'], ['::1', 'fd00::1', '127.1', '127.0.0.1 ', '']],
    ['::1/128', ['::1'], ['::', '::2', '127.0.0.1', '::1%lo']],
    ['fd00:1::/32', ['fd00:1::', 'fd00:1:ffff::1'], ['fd00:2::', 'fd00::1', 'fd00:1::1%lo']],
  ])('lets through %s and no more', (range, inside, outside) => {
    expect(inside.filter((address) => isForbidden(address, allow(range)))).toEqual([]);
    expect(outside.filter((address) => !isForbidden(address, allow(range)))).toEqual([]);
  });
});

describe('problemOfReceiver', () => {
  it.each([
    ...['http://hooks.example', 'https://hooks.example:8443/a?b=c', 'HTTP://11.0.0.1/', 'http://[2000::1]/'],
    ...['http://localhost.example/', 'http://notlocalhost/', 'http://hooks.example/@127.0.0.1'],
  ])('has nothing against %s', (url) => {
    expect(problemOfReceiver(url, allow())).toBeUndefined();
  });

  it.each([
    ['', 'must be an absolute http or https address of at most 2048 characters.'],
    ['hooks.example', 'must be an absolute'],
    ['ftp://hooks.example/', 'must be an absolute'],
    ['http:127.0.0.1', 'must be an absolute'],
    ['http:\\\\127.0.0.1', 'must be an absolute'],
    ['http://[fe80::1%25lo]/', 'must be an absolute'],
    ['http://127.0.0.1%00/', 'must be an absolute'],
    ['http://me@hooks.example/', 'must not contain a user name or password.'],
    ['http://:pass@hooks.example/', 'must not contain a user name or password.'],
    ['http://hooks.example:80@11.0.0.1/', 'must not contain a user name or password.'],
    ['http://hooks.example\\@127.0.0.1/', undefined],
    ['http://@127.0.0.1/', 'must not point to the address 127.0.0.1: loopback,'],
  ])('says of %s: %s', (url, problem) => {
    if (problem === undefined) expect(problemOfReceiver(url, allow())).toBeUndefined();
    else expect(problemOfReceiver(url, allow())).toMatch(problem);
  });
});

it.each([
  ['http://hooks.example/a', 'http://hooks.example'],
  ['HTTP://Hooks.Example:80/b?c', 'http://hooks.example'],
  ['https://hooks.example:80', 'https://hooks.example:80'],
  ['http://0x7f.1:8080/', 'http://127.0.0.1:8080'],
])('the receiver of %s is %s', (url, receiver) => {
  expect(receiverOf(url)).toBe(receiver);
});

describe('an answer', () => {
  it('comes to a request that says only what it was told to', async () => {
    let heard = '';
    const { url, port } = await startReceiver((socket) => {
      socket.on('data', (bytes: Buffer) => {
        heard += bytes.toString();
        if (heard.endsWith('}')) socket.write('HTTP/1.1 204 No Content\r\n\r\n');
      });
    });
    const answer = await egressTo(LOCAL).post(outgoing(url), NEVER);
    expect(answer).toEqual({ status: 204, body: Buffer.alloc(0) });
    expect(heard.split('\r\n')).toEqual([
      'POST /hook/secret?key=secret HTTP/1.1',
      `host: 127.0.0.1:${port}`,
      'connection: keep-alive',
      'webhook-id: e1',
      'content-length: 11',
      '',
      '{"id":"e1"}',
    ]);
  });

  type Whole = [behaviour: string, answer: string, status: number, body: string, end?: boolean];

  it.each<Whole>([
    ['with a length', 'HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc', 200, 'abc'],
    [
      'in chunks',
      'HTTP/1.1 201 Made\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n2\r\nbc\r\n0\r\n\r\n',
      201,
      'abc',
    ],
    ['that ends with its connection', 'HTTP/1.1 200 OK\r\n\r\nabc', 200, 'abc', true],
    [
      'after a first sign',
      'HTTP/1.1 103 Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na',
      200,
      'a',
    ],
    ['that is an error', 'HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nbusy', 503, 'busy'],
  ])('%s is handed on', async (_, answer, status, body, end) => {
    const { url } = await startAnswering(answer, end);
    expect(await egressTo(LOCAL).post(outgoing(url), NEVER)).toEqual({ status, body: Buffer.from(body) });
  });

  it('that leads elsewhere is not followed', async () => {
    visits = 0;
    const { url } = await startAnswering(
      `HTTP/1.1 307 Go\r\nLocation: http://127.0.0.1:${port}/\r\nContent-Length: 0\r\n\r\n`,
    );
    expect((await egressTo(LOCAL).post(outgoing(url), NEVER)).status).toBe(307);
    await expectNoVisit();
  });

  it('that is compressed stays so', async () => {
    const zipped = gzipSync('a'.repeat(100));
    const head = `HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: ${zipped.length}\r\n\r\n`;
    const { url } = await startAnswering(Buffer.concat([Buffer.from(head), zipped]));
    expect((await egressTo(LOCAL).post(outgoing(url), NEVER)).body).toEqual(zipped);
  });

  it('is cut: what lies beyond is not waited for, and the connection is dropped', async () => {
    const start = 'a'.repeat(keptBytes) + 'b'.repeat(readBytes - keptBytes);
    const { url, sockets } = await startAnswering(
      `HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n${start}`,
    );
    const egress = egressTo(LOCAL);
    const answer = await egress.post(outgoing(url), NEVER);
    expect(answer).toEqual({ status: 200, body: Buffer.from('a'.repeat(keptBytes)) });
    await expectClosed(sockets, 1);
  });

  it('one byte short of the cut is waited for', async () => {
    const start = 'a'.repeat(readBytes - 1);
    const { url } = await startAnswering(`HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n${start}`, true);
    await expect(egressTo(LOCAL).post(outgoing(url), NEVER)).rejects.toThrow(new Error(CLOSED));
  });

  type Broken = [behaviour: string, answer: string, message: string, end?: boolean];

  it.each<Broken>([
    ['that does not come', '', CLOSED, true],
    ['that breaks off in its head', 'HTTP/1.1 200 OK\r\nContent-', CLOSED, true],
    ['that breaks off before its length', 'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc', CLOSED, true],
    [
      'that breaks off before its length and said it would close',
      'HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 9\r\n\r\nabc',
      CLOSED,
      true,
    ],
    [
      'that breaks off in a chunk',
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nabc',
      CLOSED,
      true,
    ],
    [
      'that lacks its last chunk',
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n',
      CLOSED,
      true,
    ],
    [
      'that breaks off in a chunk and said it would close',
      'HTTP/1.1 200 OK\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nabc',
      INVALID,
      true,
    ],
    ['in another protocol', '220 mail.example ready\r\n', INVALID],
    [
      'with huge headers',
      `HTTP/1.1 200 OK\r\nX: ${'x'.repeat(70_000)}\r\n\r\n`,
      'The headers of the answer are too large.',
    ],
  ])('%s is none', async (_, answer, message, end) => {
    const { url, sockets } = await startAnswering(answer, end);
    await expect(egressTo(LOCAL).post(outgoing(url), NEVER)).rejects.toThrow(new Error(message));
    await expectClosed(sockets, 1);
  });

  it('in plain text is none where it was to be secured', async () => {
    const { url } = await startAnswering('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n');
    const sent = egressTo(LOCAL).post(outgoing(url.replace('http:', 'https:')), NEVER);
    await expect(sent).rejects.toThrow('The TLS handshake failed.');
  });

  it('does not come where nobody listens', async () => {
    const server = createServer();
    const url = `http://127.0.0.1:${await listen(server, '127.0.0.1')}/`;
    server.close();
    await once(server, 'close');
    const sent = egressTo(LOCAL).post(outgoing(url), NEVER);
    await expect(sent).rejects.toThrow(new Error('The connection was refused.'));
  });
});

describe('a connection', () => {
  const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';
  const GIVEN_UP = 'The request was given up before its answer was complete.';

  it('serves one request after another', async () => {
    const { url, sockets } = await startAnswering(OK);
    const egress = egressTo(LOCAL);
    for (let turn = 0; turn < 5; turn += 1) await egress.post(outgoing(url), NEVER);
    expect(sockets.length).toBe(1);
  });

  it('serves one request at a time', async () => {
    const { url, sockets } = await startReceiver();
    const egress = egressTo(LOCAL);
    const sent = [1, 2, 3].map(() => egress.post(outgoing(url), NEVER));
    await expect.poll(() => sockets.length, { interval: 2 }).toBe(3);
    for (const socket of sockets) socket.write(OK);
    expect((await Promise.all(sent)).map(({ status }) => status)).toEqual([200, 200, 200]);
  });

  it('that the receiver has closed is replaced', async () => {
    const { url, sockets } = await startAnswering(OK);
    const egress = egressTo(LOCAL);
    for (let turn = 0; turn < 3; turn += 1) {
      await egress.post(outgoing(url), NEVER);
      sockets[turn]?.end();
      await expectClosed(sockets, turn + 1);
    }
  });

  it('goes through no proxy', async () => {
    visits = 0;
    for (const name of ['HTTP_PROXY', 'http_proxy', 'HTTPS_PROXY', 'https_proxy', 'ALL_PROXY', 'all_proxy']) {
      vi.stubEnv(name, `http://127.0.0.1:${port}`);
    }
    vi.stubEnv('NODE_USE_ENV_PROXY', '1');
    onTestFinished(() => void vi.unstubAllEnvs());
    const { url } = await startAnswering(OK);
    expect((await egressTo(LOCAL).post(outgoing(url), NEVER)).body.toString()).toBe('ok');
    await expectNoVisit();
  });

  type Phase = [phase: string, scheme: string, answer: string];

  it.each<Phase>([
    ['the handshake', 'https:', ''],
    ['the head of the answer', 'http:', ''],
    ['a dripping head', 'http:', 'HTTP/1.1 200 OK\r\nX-Drip: '],
    ['a dripping body', 'http:', 'HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\na'],
  ])('is closed when the request is given up during %s', async (_, scheme, answer) => {
    const arrived = new AbortController();
    const { url, sockets } = await startReceiver((socket) => {
      socket.on('data', () => {
        socket.write(answer);
        arrived.abort();
      });
    });
    const end = new AbortController();
    const sent = egressTo(LOCAL).post(outgoing(url.replace('http:', scheme)), end.signal);
    await once(arrived.signal, 'abort');
    // A few turns, so that what was written has been read.
    for (let turns = 0; turns < 20; turns += 1) await new Promise(setImmediate);
    end.abort();
    await expect(sent).rejects.toThrow(new Error(GIVEN_UP));
    await expectClosed(sockets, 1);
  });

  it('is not made for a request that is given up while its name is resolved', async () => {
    visits = 0;
    let found: (addresses: string[]) => void = () => undefined;
    const egress = egressTo(LOCAL, () => new Promise((resolve) => (found = resolve)));
    const end = new AbortController();
    const sent = egress.post(outgoing(`http://hooks.example:${port}/`), end.signal);
    end.abort();
    await expect(sent).rejects.toThrow(new Error(GIVEN_UP));
    found(['127.0.0.1']);
    await expectNoVisit();
  });

  it('is not made for a request that was given up before', async () => {
    visits = 0;
    const sent = egressTo(LOCAL).post(outgoing(`http://127.0.0.1:${port}/`), AbortSignal.abort());
    await expectRefusal(sent, GIVEN_UP);
  });

  it('is closed with the egress, idle or not', async () => {
    let requests = 0;
    const { url, sockets } = await startReceiver((socket) => {
      socket.on('data', () => {
        requests += 1;
        if (requests === 1) socket.write(OK);
      });
    });
    const egress = egressTo(LOCAL);
    await egress.post(outgoing(url), NEVER);
    const waiting = [1, 2].map(() => egress.post(outgoing(url), NEVER));
    await expect.poll(() => requests, { interval: 2 }).toBe(3);
    const given = Promise.allSettled(waiting);
    await egress.close();
    const reasons = (await given).map((result) => result.status === 'rejected' && String(result.reason));
    expect(new Set(reasons)).toEqual(new Set(['Error: The request was given up: the server is stopping.']));
    await expectClosed(sockets, 2);
  });
});

it.each<[string, string, string[]]>([
  ['127.0.0.1 localhost', 'localhost', ['127.0.0.1']],
  ['127.0.0.1\tlocalhost\n::1 ip6-localhost localhost # both', 'LocalHost', ['127.0.0.1', '::1']],
  ['10.0.0.1 hooks.example hooks', 'hooks', ['10.0.0.1']],
  ['10.0.0.1 hooks.example', 'hooks.example.', ['10.0.0.1']],
  ['# 10.0.0.1 hooks.example', 'hooks.example', []],
  ['10.0.0.1 other.example', 'hooks.example', []],
  ['', 'hooks.example', []],
])('a hosts file: %s has %s', (text, name, addresses) => {
  expect(findInHosts(text, name)).toEqual(addresses);
});
