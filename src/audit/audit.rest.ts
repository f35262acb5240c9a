// REST resource of the audit trail: `system/audit`.
import * as z from 'zod';
import { roles } from '../lib/caller.ts';
import { formatNumber } from '../lib/format.ts';
import { answerObject, time, total } from '../rest/answer.ts';
import { choice, integer, moment, text } from '../rest/field-types.ts';
import type { Values } from '../rest/fields.ts';
import { type CsvRow, type Resource, resource } from '../rest/resource.ts';
import {
  type AuditEntry,
  type AuditFilter,
  auditOutcomes,
  foldCase,
  maxCountedEntries,
} from '../store/audit-entry.ts';
import type { ReadableStore } from '../store/store.ts';
import { type AuditWords, auditView } from './pages/audit.ts';

const value = z.union([z.string(), z.number(), z.boolean()]).nullable();

const entryAnswer = answerObject('AuditEntry', 'An entry of the audit trail.', {
  id: z.string().describe('The log lines of a refused or failed request carry it as auditEntry.'),
  at: time,
  user: z.string().nullable().describe('Null: the server itself, or a sign-in with an unknown name.'),
  role: z.enum(roles).nullable().describe('The role of the user at that time.'),
  key: z.string().nullable().describe('The name of the key of a program. Null: a token, or no caller.'),
  address: z.string().nullable().describe('The address of the client.'),
  operation: z.string().describe('The path of the operation, with the names of ids in braces.'),
  target: z.string().nullable().describe('The path of what the operation concerns.'),
  outcome: z.enum(auditOutcomes).describe('refused: nothing was changed. failed: the server failed.'),
  code: z.int().nullable().describe('The code of the answer. Null: the server itself acted.'),
  count: z.int().positive().describe('How many equal refusals within a minute the entry stands for.'),
  changes: z
    .array(
      answerObject('AuditChange', 'A field that was changed.', {
        field: z.string(),
        before: value.describe('Null: absent. Secrets are ***; texts are cut at 256 characters.'),
        after: value.describe('Likewise.'),
      }),
    )
    .describe('What was changed.'),
});

const auditAnswer = answerObject('AuditTrail', 'A page of the audit trail.', {
  entries: z.array(entryAnswer),
  total: total.describe(`How many there are on all pages, at most ${formatNumber(maxCountedEntries)}.`),
});

const fields = {
  q: text({
    to: 128,
    // Each word is compared with up to 100,000 entries.
    pattern: /^\S+( \S+){0,7}$/,
    allowed: 'at most 8 words with 128 characters in all',
    normalise: (words) => words.trim().replaceAll(/\s+/g, ' '),
  })
    .optional()
    .describe(
      'Words that must all appear: in the title or path of the operation, the target or its name, the user, the key, or the names of the changed fields.',
    ),
  from: moment('The first moment').optional(),
  to: moment('The last moment').optional(),
  user: text({ to: 64, normalise: (name) => name.trim() })
    .optional()
    .describe('The name of the user who acted.'),
  operation: text({ to: 128, normalise: (path) => path.trim().split('/').filter(Boolean).join('/') })
    .optional()
    .describe('The path of an operation or a part of it, such as security/users or delete.'),
  outcome: choice(auditOutcomes).optional().describe('The outcome.'),
  start: integer(0, maxCountedEntries)
    .optional()
    .describe('How many of the newest entries to skip. Default: 0.'),
  num: integer(1, 100)
    .optional()
    .describe('How many to show. Default: 25, or with f=csv all, but at most 100,000.'),
};

type AuditValues = Values<typeof fields>;

type AuditOptions = AuditWords & { readonly store: ReadableStore };

export function auditResource(options: AuditOptions): Resource {
  const { store } = options;
  return resource({
    title: 'Audit trail',
    description: 'Who has changed what, or tried to, newest first.',
    fields,
    answer: auditAnswer,
    read: ({ values }) => store.audit.page(filterOf(values, options), values.start ?? 0, values.num ?? 25),
    view: (page) => auditView(page, options),
    csv: {
      fileName: 'audit.csv',
      header: columns,
      rows: ({ values }) => rowsOf(options, values),
    },
  });
}

function filterOf(
  { q, from, to, user, operation, outcome }: AuditValues,
  { titles, names }: AuditWords,
): AuditFilter {
  const words = q === undefined ? undefined : [...new Set(foldCase(q).split(' '))];
  return {
    from,
    to,
    user,
    operation,
    outcome,
    words: words?.map((word) => ({ text: word, operations: titles.find(word), targets: names.find(word) })),
  };
}

/** The fields of an entry, with its time in words after the number. */
const columns = Object.keys(entryAnswer.shape).flatMap((name) => (name === 'at' ? ['at', 'time'] : [name]));

function rowOf(entry: AuditEntry): CsvRow {
  const changes = entry.changes.map(
    ({ field, before, after }) => `${field}: ${JSON.stringify(before)} → ${JSON.stringify(after)}`,
  );
  const cells: Readonly<Record<string, CsvRow[number]>> = {
    ...entry,
    time: new Date(entry.at).toISOString(),
    changes: changes.join('\n'),
  };
  return columns.map((name) => cells[name] ?? null);
}

async function* rowsOf(options: AuditOptions, values: AuditValues): AsyncIterable<CsvRow> {
  let left = values.num ?? Infinity;
  for await (const entries of options.store.audit.read(filterOf(values, options), values.start ?? 0)) {
    for (const entry of entries) {
      if (left === 0) return;
      left -= 1;
      yield rowOf(entry);
    }
  }
}
