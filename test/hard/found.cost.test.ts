// Regression tests for the findings of the fuzzer, each reduced to a minimal request: requests without a response,
// with an internal error or an invalid error body, and requests that cost far more CPU time to answer than to send.
import { afterAll, describe, expect, it } from 'vitest';
import { services } from '../../src/catalog/catalog.ts';
import { perFile } from '../kit/cleanup.ts';
import { expectCost } from '../kit/cost.ts';
import { namespace, startListening } from '../kit/server.ts';
import { judge } from './fuzz-verdict.ts';
import { type Answer, ask, openWire, write } from './wire.ts';

const server = perFile(startListening);
afterAll(() => {
  // Without this, close would wait for requests that never got a response.
  server.http.server.closeAllConnections();
});

const authorization = 'Bearer token-of-the-administrator';
const urlencoded = { 'content-type': 'application/x-www-form-urlencoded', authorization };
const multipart = { 'content-type': 'multipart/form-data; boundary=xyz', authorization };

const bytesOf = (text: string) => Buffer.from(text).toString('latin1');

function post(url: string, fields: Record<string, string>): Buffer {
  const body = new URLSearchParams(fields).toString();
  return write({ method: 'POST', url, headers: urlencoded, body });
}

function postPart(url: string, head: string, value: string): Buffer {
  const body = `--xyz\r\nContent-Disposition: form-data; ${head}\r\n\r\n${bytesOf(value)}\r\n--xyz--\r\n`;
  return write({ method: 'POST', url, headers: multipart, body });
}

async function expectGood(bytes: Buffer): Promise<Answer> {
  const answer = await ask(server.port, bytes);
  if (!answer) throw new Error('The server sent no response.');
  judge(answer, false, false);
  expect(server.logLines.splice(0).filter((line) => !/^\{"level":[234]0/.test(line))).toEqual([]);
  return answer;
}

describe('a complete request gets a response', () => {
  const withoutEnd = '--xyz\r\nContent-Disposition: form-data; name="f"\r\n\nx\r\n--xyz--\r\n';

  it.each([
    ['with a bearer token', multipart],
    ['without a token', { 'content-type': multipart['content-type'] }],
  ])('for a form part whose headers do not end, %s', async (_whose, headers) => {
    const { status, body } = await expectGood(
      write({ method: 'POST', url: '/admin/mode', headers, body: withoutEnd }),
    );
    expect([status, body]).toEqual([400, expect.stringContaining('malformed')]);
  });

  it('for a form that has only a large part of an unknown disposition', async () => {
    const body = `--xyz\r\nContent-Disposition: other; name="f"\r\n\r\n${'x'.repeat(20_000)}\r\n--xyz--\r\n`;
    const { status } = await expectGood(
      write({ method: 'POST', url: '/admin/mode', headers: multipart, body }),
    );
    expect(status).toBe(200);
  });
});

describe('a form that is refused before it is read completely', () => {
  const part = (name: string, value: string) =>
    `--xyz\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`;
  const rest = `${part('rest', 'x'.repeat(1_000_000))}--xyz--\r\n`;

  it.each<[string, string, number, Record<string, string>]>([
    ['a field twice', part('f', 'json') + part('f', 'json') + rest, 400, multipart],
    ['a part that is not valid UTF-8', part('f', '\xff') + rest, 400, multipart],
    ['a text that is too large', part('f', 'x'.repeat(1024 ** 2 + 1)) + rest, 413, multipart],
    ['no final boundary', part('f', 'json') + rest.slice(0, -20), 400, multipart],
    [
      'too many parts',
      Array.from({ length: 65 }, (_, index) => part(`p${index}`, '')).join('') + rest,
      413,
      multipart,
    ],
    ['a bad token', part('f', 'json') + rest, 401, { ...multipart, authorization: 'Bearer x' }],
  ])('does not block the next request on the connection: %s', async (_what, body, status, headers) => {
    const wire = openWire(server.port);
    wire.write(write({ method: 'POST', url: '/admin/mode', headers, body }, true));
    expect((await wire.answer(0))?.status).toBe(status);
    // The server may also close the connection.
    wire.write(write({ url: '/health' }, true));
    const next = await wire.answer(1);
    wire.socket.destroy();
    expect(next?.status ?? 'closed').toBeOneOf([200, 'closed']);
  });
});

describe('an error has the documented body', () => {
  it('for an unknown Expect header', async () => {
    await expectGood(write({ url: '/admin/mode', headers: { authorization, expect: 'wonders' } }));
  });

  it('for a request without a Host header', async () => {
    await expectGood(Buffer.from('GET /admin/mode HTTP/1.1\r\nConnection: close\r\n\r\n'));
  });
});

describe('invalid input causes no internal error', () => {
  it.each([
    ['a lone surrogate', '\\ud800'],
    // PostgreSQL rejects U+0000 in texts: without the check, the job could never continue or end, and the system
    // would stay read-only.
    ['a zero character', '\\u0000'],
  ])('for a manifest with %s in a stored text', async (_what, text) => {
    const manifest = (id: string, image: string) =>
      `[{"id":"${id}","type":"patch","version":"10.9.1","build":"1","releaseBuild":"1234","previousBuild":"1234",` +
      `"containers":[{"name":"A_1","image":"${image}"}]}]`;
    for (const manifestFile of [manifest(`pat${text}`, 'a:1'), manifest('pat', `a${text}`)]) {
      const { status } = await expectGood(post('/admin/system/upgrades/importManifest', { manifestFile }));
      await expectGood(write({ url: '/admin/system/upgrades?f=html', headers: { authorization } }));
      expect(status).toBe(400);
    }
  });
});

/** Combining marks in the wrong order: Unicode normalisation sorts them. */
const unsortedMarks = `a${'\u0315'.repeat(3900)}${'\u0300'.repeat(3900)}`;

it('searches for a member in 7,000 services, which were folded before, cost at most 20 ms', async () => {
  const given = { folderName: '/', type: 'T', capabilities: '', parentType: '', access: 'public' } as const;
  await server.store.update((transaction) => {
    for (let n = 0; n < 7_000; n += 1)
      transaction.put(services, {
        ...given,
        serviceName: `S${n}`,
        description: 'A\u0308 b '.repeat(400),
        url: null,
        createdAt: 0,
        updatedAt: 0,
        definition: {},
        configuredState: 'STARTED',
      });
  });
  const member = { authorization: 'Bearer token-of-the-member' };
  for (const page of ['/admin?q=zzz', '/admin/services?q=a+b', '/admin/services?q=a&sort=name&order=desc'])
    await expectCost(20, () => expectGood(write({ url: `${page}&f=html`, headers: member })));
});

const envelope = (inside: string) =>
  `<e:Envelope xmlns:e="http://schemas.xmlsoap.org/soap/envelope/"><e:Body>${inside}</e:Body></e:Envelope>`;

it('a SOAP message without a content type is accepted, also after one with an empty content type was refused', async () => {
  const body = envelope(`<GetMessageVersion xmlns="${namespace}"/>`);
  const statusWith = async (headers: Record<string, string>) =>
    (await expectGood(write({ method: 'POST', url: '/services', headers, body }))).status;
  expect(await statusWith({ 'content-type': '' })).toBe(415);
  expect(await statusWith({})).toBe(200);
});

describe('a request of 16 KiB that is made to cost much gets a valid answer', () => {
  const folder = `<GetServiceDescriptionsEx xmlns="${namespace}"><FolderName>${unsortedMarks}</FolderName></GetServiceDescriptionsEx>`;

  it.each<[string, Buffer]>([
    [
      'a bearer token that contains spaces',
      write({ url: '/admin', headers: { authorization: `Bearer a${' '.repeat(15_000)}b` } }),
    ],
    [
      'fields that cannot be decoded',
      write({ method: 'POST', url: '/tokens/revokeToken', headers: urlencoded, body: '%&'.repeat(8000) }),
    ],
    [
      'a query that cannot be decoded',
      write({ url: `/admin?${'%ff&'.repeat(3900)}`, headers: { accept: 'text/html' } }),
    ],
    [
      'a query that cannot be decoded beside a form that can',
      write({
        method: 'POST',
        url: `/tokens/revokeToken?f=html&${'%&'.repeat(7500)}`,
        headers: urlencoded,
        body: 'token=a',
      }),
    ],
    [
      'a name with unsorted combining marks',
      postPart('/admin/services/createFolder', 'name="folderName"', unsortedMarks),
    ],
    [
      'a file name with unsorted combining marks',
      postPart('/admin/uploads/upload', `name="itemFile"; filename="${bytesOf(unsortedMarks)}"`, 'x'),
    ],
    [
      'a SOAP request for a folder name with unsorted combining marks',
      write({
        method: 'POST',
        url: '/services',
        headers: { 'content-type': 'text/xml' },
        body: bytesOf(envelope(folder)),
      }),
    ],
  ])('%s', async (_what, bytes) => {
    await expectCost(50, () => expectGood(bytes));
  });
});

it('a form of 1 MiB with hundreds of thousands of fields gets a valid answer', async () => {
  for (const unit of ['%&', '&', 'a&', '%ff=&', '+=&']) {
    const body = unit.repeat(1024 ** 2 / unit.length);
    const bytes = write({ method: 'POST', url: '/tokens/revokeToken', headers: urlencoded, body });
    await expectCost(1000, () => expectGood(bytes));
  }
});
