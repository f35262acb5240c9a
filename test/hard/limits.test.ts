// Tests every limit on requests, at the limit and just past it. field-limits.test.ts tests the limits of single
// fields, slow.test.ts the time limits. The operating system limits the number of connections.
import { describe, expect, it } from 'vitest';
import { perFile } from '../kit/cleanup.ts';
import { startListening } from '../kit/server.ts';
import { judge } from './fuzz-verdict.ts';
import {
  authorization,
  envelope,
  importManifest,
  nest,
  ofLength,
  postForm,
  postParts,
  postSoap,
  releases,
  text,
  upload,
} from './limit-requests.ts';
import { ask, write } from './wire.ts';

const fileBytes = 2_000_000;

const server = perFile(() => startListening({ env: { MAX_UPLOAD_BYTES: String(fileBytes) } }));

/** Node counts the address and the names and values of headers, and refuses a request that reaches the limit. */
const heads = (bytes: number) => {
  const others = '/health' + 'host' + 'localhost' + 'connection' + 'close' + 'x';
  return write({ url: '/health', headers: { x: text(bytes - others.length) } });
};
const address = (bytes: number) =>
  write({ url: `/${text(bytes - ('/' + 'host' + 'localhost' + 'connection' + 'close').length)}` });

const list = (length: number) => Array.from({ length }, () => 0);
const containers = (length: number) =>
  Array.from({ length }, (_, index) => ({ name: `A_${index}`, image: 'a:1' }));

const inputs = (length: number) => Array.from({ length }, (_, index) => ({ id: `i${index}`, type: 'File' }));
const manyParts = (length: number, parameters = '') =>
  postParts(
    '/admin/mode',
    Array.from({ length }, (_, index) => [`"p${index}"${parameters}`, 'x']),
  );

/** A request whose header number `number` is the token. */
const manyHeaders = (number: number) => {
  const others = Array.from(
    { length: number - 1 - 'host connection'.split(' ').length },
    () => 'x:\r\n',
  ).join('');
  const lines = `GET /admin HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n${others}authorization: ${authorization}`;
  return Buffer.from(`${lines}\r\n\r\n`);
};

type Row = [what: string, limit: number, sent: (amount: number) => Buffer, at: number, past: number];

const rows: Row[] = [
  ['bytes of address and headers', 16 * 1024 - 1, heads, 200, 431],
  ['bytes of an address', 16 * 1024 - 1, address, 404, 431],
  ['headers', 1000, manyHeaders, 200, 400],
  ['bytes of an urlencoded body', 1024 ** 2, (n) => postForm('/admin/mode', `x=${text(n - 2)}`), 200, 413],
  ['bytes of a text field', 1024 ** 2, (n) => postParts('/admin/mode', [['"f"', text(n)]]), 400, 413],
  [
    'bytes of a text field in a file part',
    1024 ** 2,
    (n) => postParts('/admin/mode', [['"f"; filename="f"', text(n)]]),
    400,
    413,
  ],
  ['parts', 64, (n) => manyParts(n), 200, 413],
  ['files', 64, (n) => manyParts(n, '; filename="f"'), 200, 413],
  ['bytes of a file', fileBytes, (n) => upload(text(n)), 200, 413],
  [
    'bytes of an unknown part',
    fileBytes,
    (n) => postParts('/admin/mode', [['"x"; filename="f"', text(n)]]),
    200,
    413,
  ],
  ['characters of a file name', 255, (n) => upload('x', text(n)), 200, 400],
  ['bytes of a SOAP request', 16 * 1024, (n) => postSoap(ofLength(n)), 200, 413],
  ['bytes of a decompressed SOAP request', 16 * 1024, (n) => postSoap(ofLength(n), true), 200, 413],
  ['levels of XML', 32, (n) => postSoap(envelope('<a>'.repeat(n - 2) + '</a>'.repeat(n - 2))), 200, 500],
  ['elements of XML', 1000, (n) => postSoap(envelope('<a/>'.repeat(n - 4))), 200, 500],
  [
    'attributes of an element',
    64,
    (n) => postSoap(envelope(`<a${Array.from({ length: n }, (_, i) => ` a${i}=""`).join('')}/>`)),
    200,
    500,
  ],
  ['versions of a manifest', 500, (n) => importManifest(releases(n)), 200, 413],
  ['values of a manifest', 200_000, (n) => importManifest(releases(1, { x: list(n - 10) })), 200, 400],
  [
    'containers of a version',
    5000,
    (n) => importManifest(releases(1, { containers: containers(n) })),
    200,
    400,
  ],
  [
    'inputs of a version',
    200,
    (n) => importManifest(releases(1, { userForm: [{ groupInputs: inputs(n) }] })),
    200,
    400,
  ],
  ['levels of a manifest', 32, (n) => importManifest(releases(1, { x: nest(n - 2) })), 200, 400],
];

describe('a request is limited', () => {
  it.each(rows)('in the number of %s: %d', async (_what, limit, sent, at, past) => {
    for (const [amount, status] of [
      [limit, at],
      [limit + 1, past],
    ] as const) {
      const answer = await ask(server.port, sent(amount));
      expect(answer?.status, `${amount}: ${answer?.body.slice(0, 300) ?? ''}`).toBe(status);
      if (answer) judge(answer, false, false);
    }
  });
});

it('the server limits the number of problems that it reports for a manifest', async () => {
  for (const [count, reported] of [
    [200, 200],
    [201, 200],
  ] as const) {
    const answer = await ask(server.port, importManifest(releases(count, { containers: 0 })));
    const { error } = JSON.parse(answer?.body ?? '') as { error: { details: string[] } };
    expect(error.details).toHaveLength(reported);
  }
});
