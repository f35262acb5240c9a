// Rows of CSV files.
import { describe, expect, it } from 'vitest';
import fastify from 'fastify';
import { type CsvRow } from '../../src/rest/resource.ts';
import { formatRow, sendCsv } from '../../src/rest/csv.ts';

it.each<[string, string | number | null, string]>([
  ['a text', 'a b', 'a b'],
  ['nothing', null, ''],
  ['a number', -1.5, '-1.5'],
  ['a comma', 'a,b', '"a,b"'],
  ['a semicolon', 'a;b', '"a;b"'],
  ['a formula after a semicolon', 'a;=1+1;-b', `"a;'=1+1;'-b"`],
  ['a formula after a semicolon and quotation marks', 'a;"=1+1"', `"a;""'=1+1"""`],
  ['quotation marks', 'say "a"', '"say ""a"""'],
  ['a line break', 'a\nb', '"a\nb"'],
  ['a carriage return', 'a\rb', '"a\rb"'],
  ['text that begins with =', '=1+1', "'=1+1"],
  ['text that begins with +', '+1', "'+1"],
  ['text that begins with -', '-1', "'-1"],
  ['text that begins with @', '@a', "'@a"],
  ['text that begins with a tab', '\ta', "'\ta"],
  ['text that begins with a carriage return', '\ra', '"\'\ra"'],
])('shows %s', (_what, value, text) => {
  expect(formatRow([value, 'z'])).toBe(`${text},z\r\n`);
});

describe('an export', () => {
  let isClosed = false;

  async function* endless(): AsyncIterable<CsvRow> {
    try {
      for (;;) yield await Promise.resolve(['x'.repeat(1000)]);
    } finally {
      isClosed = true;
    }
  }

  function createApp() {
    isClosed = false;
    const app = fastify({ forceCloseConnections: true, exposeHeadRoutes: false });
    const handler = (_request: unknown, reply: Parameters<typeof sendCsv>[0]) =>
      sendCsv(reply, { fileName: 'a.csv', header: ['h'], rows: endless() });
    app.route({ method: ['GET', 'HEAD'], url: '/', handler });
    return app;
  }

  it('closes its rows when the client goes', async () => {
    const app = createApp();
    const client = new AbortController();
    const answer = await fetch(await app.listen({ host: '127.0.0.1', port: 0 }), { signal: client.signal });
    await answer.body?.getReader().read();
    client.abort();
    await expect.poll(() => isClosed).toBe(true);
    await app.close();
  });

  it('closes its rows after the last one that it contains', async () => {
    const { body } = await createApp().inject('/');
    expect(body.split('\r\n')).toHaveLength(100_002);
    expect(isClosed).toBe(true);
  });

  it('says nothing about its length in the answer to HEAD, and closes its rows', async () => {
    const { headers, body } = await createApp().inject({ method: 'HEAD', url: '/' });
    expect(headers['content-type']).toBe('text/csv; charset=utf-8; header=present');
    expect(headers['content-length']).toBeUndefined();
    expect(body).toBe('');
    expect(isClosed).toBe(true);
  });
});
