// Request bodies that cost more than their size: bodies in tiny chunks, bodies that never end, and texts that are
// slow to decode.
import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { formTokenOf } from '../../src/auth/token.ts';
import { perFile } from '../kit/cleanup.ts';
import { expectCost } from '../kit/cost.ts';
import { startListening } from '../kit/server.ts';
import { type Kind, begin, inChunks, kinds } from './bodies-kit.ts';
import { judge } from './fuzz-verdict.ts';
import { type Wire, ask, openWire, write } from './wire.ts';

const KiB = 1024;
const MiB = 1024 ** 2;

let requests = 0;
const wires: Wire[] = [];
const countConnections = () =>
  new Promise((resolve) => server.http.server.getConnections((_error, count) => resolve(count)));
const server = perFile(() => startListening({ env: { TRUSTED_PROXIES: '127.0.0.0/8' } }));
beforeAll(() => {
  server.http.server.on('request', () => (requests += 1));
});
afterEach(async () => {
  for (const { socket } of wires.splice(0)) socket.destroy();
  // The bodies of the next test need their places.
  await expect.poll(countConnections, { interval: 5 }).toBe(0);
});

const [urlencoded, multipart] = kinds as [Kind, Kind];
const authorization = 'Bearer token-of-the-administrator';

function open(bytes: Buffer): Wire {
  const wire = openWire(server.port);
  wires.push(wire);
  wire.write(bytes);
  return wire;
}

const statuses = (some: readonly Wire[]) => some.map(({ answers }) => answers[0]?.status);
const from = (address: string) => ({ 'x-forwarded-for': address });

/** Resolves when the server has received that many requests since the call. */
function received(count: number): () => Promise<void> {
  const before = requests;
  return () => expect.poll(() => requests - before).toBe(count);
}

describe.each(kinds)('a body over 64 KiB in chunks, $name', (kind) => {
  it('is 400 if they have fewer than 64 bytes on average, and the connection is closed', async () => {
    for (const headers of [{}, { authorization }]) {
      const wire = open(inChunks(kind, kind.body(65 * KiB), 1, { headers, end: '' }));
      const answer = await wire.answer();
      expect(answer?.status).toBe(400);
      expect(answer?.headers.connection).toBe('close');
      expect(answer?.body).toContain('at least 64 bytes on average');
      if (answer) judge({ ...answer, status: kind.name === 'SOAP' ? 500 : 400 }, false, false);
      await wire.closed;
    }
  });

  it('is read if they have 64 bytes', async () => {
    const answer = await ask(server.port, inChunks(kind, kind.body(MiB - 1000), 64));
    expect(answer?.body).toContain(kind.name === 'SOAP' ? 'at most 16384 bytes' : 'username: is required.');
  });
});

it('a body of 64 KiB may come in chunks of one byte', async () => {
  const answer = await ask(server.port, inChunks(urlencoded, urlencoded.body(64 * KiB - 2), 1));
  expect(answer?.body).toContain('username: is required.');
});

it('a form with a file that is too large gets its answer, and the connection stays open', async () => {
  const part = `--b\r\nContent-Disposition: form-data; name="x"; filename="x"\r\n\r\n${'x'.repeat(11 * MiB)}\r\n`;
  const body = `${part}${part.replace('"x"', '"y"')}--b--\r\n`;
  const wire = open(begin(multipart, {}, body, body.length));
  expect((await wire.answer())?.status).toBe(413);
  wire.write(write({ url: '/health' }, true));
  expect((await wire.answer(1))?.status).toBe(200);
});

describe('an anonymous request of 1 MiB is refused', () => {
  const form = (body: string, url = urlencoded.url) =>
    write({ method: 'POST', url, headers: { 'content-type': urlencoded.contentType }, body });
  const texts = (value: string) => {
    const names = ['username', 'password', 'referer', 'ip', 'next'];
    const size = Math.floor((MiB - 1000) / names.length / value.length);
    const part = (name: string) =>
      `--b\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value.repeat(size)}\r\n`;
    return write({
      method: 'POST',
      url: multipart.url,
      headers: { 'content-type': multipart.contentType },
      body: `${names.map(part).join('')}--b--\r\n`,
    });
  };
  const filled = (start: string, unit: string) =>
    start + unit.repeat(Math.floor((MiB - start.length) / unit.length));

  it.each<[string, () => Buffer]>([
    ['plus signs in an unknown field', () => form(filled('zzz=', '+'))],
    ['plus signs in a field', () => form(filled('username=', '+'))],
    ['plus signs in a name', () => form(filled('', '+'))],
    ['escapes in an unknown field', () => form(filled('zzz=', '%41'))],
    ['escapes in a field', () => form(filled('username=', '%41'))],
    ['escapes that are not UTF-8', () => form(filled('username=', '%ff'))],
    ['bytes that are not UTF-8', () => form(filled('username=', '\xff'))],
    ['a long text in each field', () => texts('a')],
    ['characters of two code units in each field', () => texts('\xf0\x9f\x98\x80')],
    ['characters that HTML escapes, on the sign-in page', () => form(filled('f=html&username=', '<'))],
    ['a long path to go to next', () => form(filled('f=html&next=/', '<'))],
    [
      'characters that HTML escapes, on the page of an operation',
      () => form(filled('f=xml&upgradeSettings=', "'"), '/admin/system/upgrades/plan?f=html'),
    ],
    ['a part full of beginnings of boundaries', () => texts('\r\n--a')],
    ['a part full of line breaks', () => texts('\r\n')],
  ])('%s', async (_what, request) => {
    const bytes = request();
    const answer = await expectCost(50, () => ask(server.port, bytes));
    expect(answer?.status).toBeOneOf([400, 401]);
  });
});

describe('bodies without a valid bearer token or session cookie', () => {
  it.each(kinds)('must arrive within 60 seconds: $name', async (kind) => {
    const arrived = received(1);
    const wire = open(begin(kind, {}, '', 1000));
    await arrived();
    // What is set forward is the clock: no time passes.
    server.runtime.jump(120_000);
    await server.runtime.advance(59_999);
    expect(wire.answers).toEqual([]);
    await server.runtime.advance(1);
    const answer = await wire.answer();
    expect(answer?.status).toBe(400);
    expect(answer?.body).toContain('The request body did not arrive in time.');
    await wire.closed;
  });

  it('that take longer than a second get 4 places for each /24 or /48, all kinds together', async () => {
    const arrived = received(20);
    const slow = (addresses: string[]) =>
      addresses.map((address, index) =>
        open(begin(kinds[index % kinds.length] ?? urlencoded, from(address), '', 1000)),
      );
    const first = slow(['198.51.100.1', '198.51.100.2', '198.51.100.3', '198.51.100.4', '198.51.100.255']);
    const second = slow(Array.from({ length: 5 }, () => '198.51.101.1'));
    const third = slow([
      '2001:db8:1::1',
      '2001:db8:1:2::1',
      '2001:db8:1:3::',
      '2001:db8:1:4::',
      '2001:db8:1::2',
    ]);
    const fourth = slow(Array.from({ length: 5 }, () => '2001:db8:2::1'));
    await arrived();
    await server.runtime.advance(999);
    expect(statuses([...first, ...second, ...third, ...fourth]).filter(Boolean)).toEqual([]);
    await server.runtime.advance(1);
    for (const network of [first, second, third, fourth]) {
      await expect.poll(() => statuses(network).filter(Boolean).length).toBe(1);
      const [refused] = network.flatMap(({ answers }) => answers);
      expect(refused?.body).toContain('Too many request bodies are being read.');
    }
    // A body that is there at once needs no place.
    const complete = { 'content-type': urlencoded.contentType, ...from('198.51.100.9') };
    const form = write({ method: 'POST', url: '/admin/mode', headers: complete, body: 'f=json' });
    expect((await ask(server.port, form))?.status).toBe(401);
    // A client that gives up makes room.
    const [gone] = first.filter(({ answers }) => answers.length === 0);
    gone?.socket.destroy();
    const next = received(1);
    const late = slow(['198.51.100.7']);
    await next();
    await server.runtime.advance(1000);
    expect(statuses(late)).toEqual([undefined]);
    // So does a body that has not arrived in time.
    await server.runtime.advance(60_000);
    await Promise.all(late.map(({ closed }) => closed));
    const after = received(5);
    const last = slow(Array.from({ length: 5 }, () => '198.51.100.8'));
    await after();
    await server.runtime.advance(1000);
    await expect.poll(() => statuses(last).filter(Boolean)).toEqual([503]);
  });

  it('use at most 64 MiB together, and one network half of it', async () => {
    const held = (address: string, count: number) =>
      Array.from({ length: count }, () => open(begin(urlencoded, from(address), 'x'.repeat(MiB - 10), MiB)));
    const refused = (some: readonly Wire[]) => statuses(some).filter((status) => status === 503).length;
    const large = `f=json&other=${'x'.repeat(17_000)}`;
    const answered = async (headers: Record<string, string>, body = large) =>
      (await ask(server.port, write({ method: 'POST', url: '/admin/mode', headers, body })))?.status;
    const type = { 'content-type': urlencoded.contentType };
    const first = held('198.51.100.1', 40);
    await expect.poll(() => refused(first)).toBeGreaterThan(0);
    expect(await answered({ ...type, ...from('198.51.101.1') })).toBe(401);
    const second = held('198.51.101.1', 40);
    await expect.poll(() => refused(second)).toBeGreaterThan(0);
    const third = held('198.51.102.1', 4);
    await expect.poll(() => refused(third)).toBeGreaterThan(0);
    expect(await answered({ ...type, ...from('198.51.102.1') })).toBe(503);
    // A small body that arrives with its headers counts against no limit.
    expect(await answered({ ...type, ...from('198.51.102.1') }, 'f=json')).toBe(401);
    // Signed-in callers have a budget of their own.
    expect(await answered({ ...type, authorization })).toBe(200);
    for (const { socket } of [...first, ...second, ...third]) socket.destroy();
    await expect.poll(() => answered({ ...type, ...from('198.51.102.1') })).toBe(401);
  });
});

it('16 silent sockets do not affect the upload of a signed-in user', async () => {
  const arrived = received(16);
  const silent = Array.from({ length: 16 }, () => open(begin(multipart, from('198.51.100.1'))));
  await arrived();
  await server.runtime.advance(1000);
  await expect.poll(() => statuses(silent).filter((status) => status === 503).length).toBe(12);

  const session = server.token('administrator');
  const file = `--b\r\nContent-Disposition: form-data; name="itemFile"; filename="a"\r\n\r\n${'x'.repeat(MiB)}\r\n--b--\r\n`;
  const field = (name: string, value: string) =>
    `--b\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`;
  /** Sends half of the form, waits two seconds, and sends the rest. */
  const upload = async (headers: Record<string, string>, body: string) => {
    const next = received(1);
    const bytes = begin({ ...multipart, url: '/admin/uploads/upload' }, headers, body, body.length);
    const wire = open(bytes.subarray(0, -body.length / 2));
    await next();
    await server.runtime.advance(2000);
    wire.socket.write(bytes.subarray(-body.length / 2));
    return (await wire.answer())?.status;
  };
  const byCookie = { cookie: `steward_session=${session}` };
  const formToken = field('token', formTokenOf(session));
  for (const address of ['198.51.100.1', '198.51.100.2', '203.0.113.1']) {
    expect(await upload({ ...from(address), ...byCookie }, formToken + file)).toBe(200);
    expect(await upload({ ...from(address), authorization }, file)).toBe(200);
  }
  // A token in a field is known only after the body is read.
  expect(await upload(from('203.0.113.1'), field('token', session) + file)).toBe(200);
  expect(await upload(from('198.51.100.2'), field('token', session) + file)).toBe(503);
});
