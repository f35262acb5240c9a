// The resource of the audit trail: pages, filters and the CSV file.
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, describe, expect, it } from 'vitest';
import type { AuditEntry } from '../../src/store/audit-entry.ts';
import { type Server, startServer } from '../kit/server.ts';
import { auditEntry } from '../store/definitions.ts';

const path = '/admin/system/audit';

let server: Server;
const headers = { authorization: 'Bearer token-of-the-administrator' };

type Page = { entries: AuditEntry[]; total: number };

const get = (query = '') => server.get(path + query, headers);
const read = async (query: string) => (await get(query)).json<Page>();
const ids = async (query: string) => (await read(query)).entries.map(({ id }) => id);

beforeAll(async () => {
  server = await startServer();
  const at = server.runtime.now();
  const changes = [{ field: 'description', before: '=1+1', after: 'a "quoted", text' }];
  const imported = [{ field: 'manifestImportedAt', before: null, after: 1794981254748 }];
  await server.store.update((transaction) => {
    for (const entry of [
      auditEntry({ id: 'a', at: at + 1, operation: 'mode/update', changes }),
      auditEntry({ id: 'b', at: at + 2, user: 'bob', role: 'member', target: '=HYPERLINK("x")' }),
      auditEntry({ id: 'c', at: at + 3, outcome: 'refused', code: 403, count: 7, changes: imported }),
      auditEntry({ id: 'd', at: at + 4, user: null, role: null, address: null, target: null, code: null }),
    ])
      transaction.audit.record(entry);
  });
});

it('is a page of entries, newest first, with their total', async () => {
  expect(await read('')).toMatchObject({
    entries: [{ id: 'd', user: null }, { id: 'c' }, { id: 'b' }, { id: 'a' }],
    total: 4,
  });
  expect(await read('?start=1&num=2')).toMatchObject({ entries: [{ id: 'c' }, { id: 'b' }], total: 4 });
});

it('has filters', async () => {
  const at = server.runtime.now();
  expect(await ids('?user=BOB')).toEqual(['b']);
  expect(await ids('?operation=/services/')).toEqual(['d', 'c', 'b']);
  expect(await ids('?outcome=refused')).toEqual(['c']);
  expect(await ids(`?from=${at + 2}&to=${at + 3}`)).toEqual(['c', 'b']);
  expect(await read(`?from=${at + 9}`)).toEqual({ entries: [], total: 0 });
});

it('finds words in titles, paths, targets, users and fields', async () => {
  expect(await ids('?q=CREATE+folder')).toEqual(['d', 'c', 'b']);
  expect(await ids('?q=createFolder+BOB')).toEqual(['b']);
  expect(await ids('?q=hyperlink')).toEqual(['b']);
  expect(await ids('?q=descr')).toEqual(['a']);
  expect(await ids('?q=quoted')).toEqual([]);
  const csv = (await get('?f=csv&q=bob')).body.split('\r\n');
  expect(csv.slice(1).map((line) => line[0])).toEqual(['b', undefined]);
});

it.each([
  ['?q=1+2+3+4+5+6+7+8+9', 'q: must be at most 8 words with 128 characters in all.'],
  ['?outcome=ok', 'outcome: must be one of success, refused, failed.'],
  ['?num=0', 'num: must be an integer from 1 to 100.'],
  [
    '?from=yesterday',
    'from: must be a time in UTC such as 2026-11-18T07:30, or an integer of milliseconds since the epoch.',
  ],
  ['?start=-1', 'start: must be an integer from 0 to 100000.'],
  ['?f=xml', 'f: must be one of json, pjson, html, csv.'],
  ['?f=csv&outcome=ok', 'outcome: must be one of success, refused, failed.'],
])('refuses %s as JSON', async (query, problem) => {
  const response = await get(query);
  expect(response.statusCode).toBe(400);
  expect(response.json<{ error: { details: string[] } }>().error.details).toEqual([problem]);
});

describe('as a CSV file', () => {
  it('has a header and one row per entry', async () => {
    const response = await get('?f=csv');
    expect(response.headers).toMatchObject({
      'content-type': 'text/csv; charset=utf-8; header=present',
      'content-disposition': 'attachment; filename="audit.csv"',
      'cache-control': 'no-store',
    });
    const time = (later: number) => {
      const at = server.runtime.now() + later;
      return `${at},${new Date(at).toISOString()}`;
    };
    const operation = 'services/createFolder';
    expect(response.body.split('\r\n')).toEqual([
      'id,at,time,user,role,key,address,operation,target,outcome,code,count,changes',
      `d,${time(4)},,,,,${operation},,success,,1,`,
      `c,${time(3)},Ann,administrator,,192.0.2.1,${operation},services,refused,403,7,manifestImportedAt: null → 1794981254748`,
      `b,${time(2)},bob,member,,192.0.2.1,${operation},"'=HYPERLINK(""x"")",success,200,1,`,
      `a,${time(1)},Ann,administrator,,192.0.2.1,mode/update,services,success,200,1,` +
        `"description: ""=1+1"" → ""a \\""quoted\\"", text"""`,
      '',
    ]);
  });

  it('contains the entries that match', async () => {
    const rows = async (query: string) =>
      (await get(query)).body
        .split('\r\n')
        .slice(1, -1)
        .map((line) => line[0]);
    expect(await rows('?f=csv&outcome=success&start=1')).toEqual(['b', 'a']);
    expect(await rows('?f=csv&num=2')).toEqual(['d', 'c']);
  });

  it('contains 100,000 rows at most', async () => {
    const own = await startServer();
    const portion = Array.from({ length: 999 }, () => auditEntry());
    own.store.audit.read = async function* () {
      for (;;) yield await Promise.resolve(portion);
    };
    const response = await own.get(`${path}?f=csv`, {
      authorization: `Bearer ${own.token('administrator')}`,
    });
    expect(response.body.split('\r\n')).toHaveLength(100_002);
  });

  it('is read from the store only as fast as the client reads it', async () => {
    const own = await startServer();
    const changes = [{ field: 'description', before: null, after: 'x'.repeat(20_000) }];
    const batch = Array.from({ length: 100 }, () => auditEntry({ changes }));
    let batches = 0;
    own.store.audit.read = async function* () {
      for (;;) {
        batches += 1;
        yield await Promise.resolve(batch);
      }
    };
    const socket = connect(Number(new URL(await own.listen()).port), '127.0.0.1');
    socket.write(
      `GET ${path}?f=csv HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${own.token('administrator')}\r\n\r\n`,
    );
    await expect.poll(() => batches).toBeGreaterThan(0);
    for (let before = 0; before < batches; await sleep(100)) before = batches;
    // The buffers of the operating system have some, all would be 1,000.
    expect(batches).toBeLessThan(50);
    socket.destroy();
  });

  it('is an error if the store is unavailable', async () => {
    const own = await startServer();
    own.store.audit.read = async function* () {
      yield await Promise.reject(new Error('broken'));
    };
    const response = await own.get(`${path}?f=csv`, {
      authorization: `Bearer ${own.token('administrator')}`,
    });
    expect(response.statusCode).toBe(500);
    expect(response.json()).toMatchObject({ status: 'error', error: { code: 500 } });
  });

  it('exists for no other resource', async () => {
    const response = await server.get('/admin/system/jobs?f=csv', headers);
    expect(response.json()).toMatchObject({ error: { details: ['f: must be one of json, pjson, html.'] } });
  });
});
