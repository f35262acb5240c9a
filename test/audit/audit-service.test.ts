// The entries that wait in memory while the database is unavailable.
import { beforeEach, expect, it } from 'vitest';
import { AuditService } from '../../src/audit/audit-service.ts';
import { ServiceError } from '../../src/lib/errors.ts';
import { createTasks } from '../../src/lib/tasks.ts';
import type { AuditEntry } from '../../src/store/audit-entry.ts';
import { createFakeRuntime } from '../kit/runtime.ts';
import { createTestStore } from '../kit/store.ts';
import { auditEntry } from '../store/definitions.ts';

const unavailable = () => Promise.reject(new ServiceError('unavailable', 'unavailable'));

let runtime: ReturnType<typeof createFakeRuntime>;
let store: Awaited<ReturnType<typeof createTestStore>>;
let lost: AuditEntry[];
let tasks: ReturnType<typeof createTasks>;
let service: AuditService;

beforeEach(async () => {
  runtime = createFakeRuntime();
  store = await createTestStore();
  lost = [];
  tasks = createTasks(runtime, () => undefined);
  service = new AuditService({ store, runtime, tasks, days: 1, onLost: (entry) => lost.push(entry) });
  Object.assign(store.audit, { originalAdd: store.audit.add, add: unavailable, count: unavailable });
});

const restore = () => Object.assign(store.audit, { add: (store.audit as unknown as Restored).originalAdd });
type Restored = { originalAdd: (entry: AuditEntry) => Promise<void> };

const refusal = (traits: Partial<AuditEntry> = {}) =>
  auditEntry({ at: runtime.now(), outcome: 'refused', code: 403, ...traits });
const stored = async () => (await store.audit.page({}, 0, 2000)).entries;

it('are stored later under their ids, equal ones as one', async () => {
  const first = await service.record(refusal({ id: 'first' }));
  expect([
    first,
    await service.record(refusal()),
    await service.record(refusal({ code: 404, id: 'other' })),
  ]).toEqual(['first', 'first', 'other']);
  restore();
  await runtime.advance(1000);
  expect((await stored()).map(({ id, count }) => [id, count]).sort()).toEqual([
    ['first', 2],
    ['other', 1],
  ]);
  expect(lost).toEqual([]);
});

it('are counted together only within a minute', async () => {
  await service.record(refusal({ id: 'first' }));
  expect(await service.record(refusal({ id: 'later', at: runtime.now() + 60_000 }))).toBe('later');
});

it('are 100 of one user and 1,000 in all', async () => {
  const failure = (user: string) =>
    service.record(auditEntry({ at: runtime.now(), user, outcome: 'failed' }));
  for (let n = 0; n < 102; n += 1) await failure('flood');
  expect(lost.map(({ user }) => user)).toEqual(['flood', 'flood']);
  for (let n = 0; n < 950; n += 1) await failure(`user ${n}`);
  expect(lost.length).toBe(52);
  restore();
  await runtime.advance(1000);
  expect(await stored()).toHaveLength(1000);
});

it('are reported when the process ends', async () => {
  await service.record(refusal({ id: 'being stored' }));
  await service.record(refusal({ id: 'waiting', code: 404 }));
  await tasks.stop();
  await service.record(refusal({ id: 'after the end', code: 409 }));
  service.close();
  expect(lost.map(({ id }) => id).sort()).toEqual(['after the end', 'being stored', 'waiting']);
});

it('are reported, not thrown, if the store refuses them', async () => {
  store.audit.count = () => Promise.reject(new Error('broken'));
  expect(await service.record(refusal({ id: 'one' }))).toBe('one');
  expect(lost.map(({ id }) => id)).toEqual(['one']);
});
