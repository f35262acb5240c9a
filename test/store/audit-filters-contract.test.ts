// Contract of the filters of the audit trail: every store finds what `matchesFilter` accepts, newest first, page by
// page.
import { describe, expect, it } from 'vitest';
import {
  type AuditFilter,
  type AuditWord,
  auditOutcomes,
  matchesAuditFilter,
} from '../../src/store/audit-entry.ts';
import { backends } from './backends.ts';
import { auditEntry } from './definitions.ts';

const operations = [
  'services/createFolder',
  'services/{service}/edit',
  'security/users/add',
  'uploads/upload',
];
const at = (number: number) => 1_000 + 10 * Math.floor(number / 3);

/** Several have the same time. */
const entries = Array.from({ length: 60 }, (_, number) =>
  auditEntry({
    at: at(number),
    user: ['Ann', 'Bob', null][number % 3] ?? null,
    operation: operations[(number * 7) % 4] ?? '',
    outcome: auditOutcomes[(number * 5) % 3] ?? 'success',
    target: [null, 'services/webhooks/w1', 'services/Maps/Roads.MapServer'][number % 5] ?? null,
    changes: number % 6 === 0 ? [{ field: 'hook"Url', before: 'folder', after: 'numberOfFailures' }] : [],
    code: number,
  }),
);

function word(text: string, known: Partial<AuditWord> = {}): AuditWord {
  return { text, operations: [], targets: [], ...known };
}

const filters: AuditFilter[] = [
  {},
  { user: 'ann' },
  { user: 'nobody' },
  { operation: 'services' },
  { operation: 'services/{service}/edit' },
  { operation: 'edit' },
  { operation: 'serv' },
  { outcome: 'success' },
  { outcome: 'failed' },
  { from: at(20), to: at(40) },
  { operation: 'services', from: at(20), to: at(40), outcome: 'refused' },
  { user: 'BOB', operation: 'services', outcome: 'failed', to: at(50) },
  { words: [word('folder')] },
  { words: [word('bo')] },
  { words: [word('roads.mapserver'), word('ann')] },
  { words: [word('hook"url')] },
  { words: [word('numberoffailures')] },
  { words: [word('add', { operations: ['uploads/upload'] })] },
  { words: [word('billing', { targets: ['services/webhooks/w1'] })] },
  { words: [word('a%')] },
  { words: [word('services'), word('o')], operation: 'edit', from: at(10), outcome: 'failed' },
  { words: [word('web')], user: 'ann' },
];

describe.each(backends)('the audit trail of the %s store', (_name, open) => {
  it('finds the entries that match', async () => {
    const { audit } = await open();
    for (const entry of entries) await audit.add(entry);
    for (const filter of filters) {
      const matching = entries.filter((entry) => matchesAuditFilter(entry, filter)).toReversed();
      const total = matching.length;
      expect(await audit.page(filter, 0, 7)).toEqual({ entries: matching.slice(0, 7), total });
      expect(await audit.page(filter, 5, 100)).toEqual({ entries: matching.slice(5), total });
      const read = [];
      for await (const portion of audit.read(filter, 2)) read.push(...portion);
      expect(read).toEqual(matching.slice(2));
    }
  });
});
