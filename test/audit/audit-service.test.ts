// Entries of the audit trail that describe no change: the store takes them, or the log.
import { beforeEach, expect, it } from 'vitest';
import { AuditService } from '../../src/audit/audit-service.ts';
import { ServiceError } from '../../src/lib/errors.ts';
import { createTasks } from '../../src/lib/tasks.ts';
import { createFakeRuntime } from '../kit/runtime.ts';
import { createTestStore } from '../kit/store.ts';
import { auditEntry } from '../store/definitions.ts';

let store: Awaited<ReturnType<typeof createTestStore>>;
let service: AuditService;
let lost: unknown[];

beforeEach(async () => {
  const runtime = createFakeRuntime();
  store = await createTestStore();
  lost = [];
  const tasks = createTasks(runtime, () => undefined);
  const onLost = ({ id }: { id: string }, error: unknown) => lost.push([id, error]);
  service = new AuditService({ store, runtime, tasks, days: 1, onLost });
});

const refusal = auditEntry({ id: 'refusal', outcome: 'refused', code: 403 });
const failure = auditEntry({ id: 'failure', outcome: 'failed', code: 503 });

it('are stored, equal refusals as one', async () => {
  expect(await service.record(failure)).toBe('failure');
  expect(await service.record(refusal)).toBe('refusal');
  expect(await service.record({ ...refusal, id: 'equal' })).toBe('refusal');
  const { entries } = await store.audit.page({}, 0, 10);
  expect(entries.map(({ id, count }) => [id, count])).toEqual([
    ['refusal', 2],
    ['failure', 1],
  ]);
  expect(lost).toEqual([]);
});

it.each([new ServiceError('unavailable', 'The database cannot be reached.'), new Error('broken')])(
  'are reported, not thrown and not stored later, if the store throws: %s',
  async (error) => {
    const { audit } = store;
    const { add, count } = audit;
    Object.assign(audit, { add: () => Promise.reject(error), count: () => Promise.reject(error) });
    expect(await service.record(failure)).toBe('failure');
    expect(await service.record(refusal)).toBe('refusal');
    expect(lost).toEqual([
      ['failure', error],
      ['refusal', error],
    ]);
    Object.assign(audit, { add, count });
    expect(await service.record({ ...refusal, id: 'next' })).toBe('next');
    expect((await audit.page({}, 0, 10)).entries.map(({ id }) => id)).toEqual(['next']);
  },
);
