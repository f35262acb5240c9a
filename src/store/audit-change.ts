// What an update has changed, for people: the fields of its rows before and after, without secrets.
import { type AuditFields, type AuditValue, Secret, notAudited } from '../lib/audit-fields.ts';
import { truncate } from '../lib/text.ts';
import type { AnyCell, ChangedRow } from './state.ts';

export type Change = { readonly field: string; readonly before: AuditValue; readonly after: AuditValue };

const maxTextLength = 256;
const maxChanges = 50;

export function changesOf(changed: readonly ChangedRow[]): readonly Change[] {
  const audited = changed.filter(({ of, key }) => key !== null && of.auditFields !== notAudited);
  const hasOneRow = audited.length === 1;
  const rows = changed.map(({ of, key, before, after }) => {
    // One row needs no name: the target of the entry names it.
    const prefix = key === null || hasOneRow ? '' : `${of.name}/${key}.`;
    const { idOf } = of as AnyCell;
    const isReplaced = idOf?.(before as never) !== idOf?.(after as never);
    return compareFields(isReplaced ? noFields : fieldsOf(of, before), fieldsOf(of, after), prefix);
  });
  return limit(rows);
}

const noFields: AuditFields = {};

function fieldsOf({ auditFields }: ChangedRow['of'], row: unknown): AuditFields {
  return row === undefined ? noFields : auditFields(row as never);
}

export function compareFields(before: AuditFields, after: AuditFields, prefix = ''): Change[] {
  const changes: Change[] = [];
  const compare = (name: string) => {
    if (!isEqual(before[name], after[name]))
      changes.push({ field: prefix + name, before: shown(before[name]), after: shown(after[name]) });
  };
  for (const name of Object.keys(before)) compare(name);
  for (const name of Object.keys(after)) if (!Object.hasOwn(before, name)) compare(name);
  return changes;
}

/** Of many changes, the first ones of each row are shown: the list names as many rows as possible. */
function limit(rows: readonly (readonly Change[])[]): readonly Change[] {
  const changes = rows.flat();
  const rest = changes.length - maxChanges;
  if (rest <= 0) return changes;
  const places = new Map(rows.flatMap((row) => row.map((change, place) => [change, place] as const)));
  const shown = changes.toSorted((one, other) => (places.get(one) ?? 0) - (places.get(other) ?? 0));
  return [...shown.slice(0, maxChanges), { field: '…', before: null, after: `${rest} more` }];
}

type Value = AuditFields[string] | undefined;

/** Absent and empty values are equal, so that a new row lists only what was given. */
function isEqual(one: Value, other: Value): boolean {
  return one === other || textOf(one) === textOf(other);
}

function textOf(value: Value): string {
  const plain = value instanceof Secret ? value.value : value;
  return isEmpty(plain) ? '' : JSON.stringify(plain);
}

function isEmpty(value: unknown): boolean {
  return (
    value === undefined || value === null || value === '' || (Array.isArray(value) && value.length === 0)
  );
}

function shown(value: Value): AuditValue {
  if (value === undefined || isEmpty(value instanceof Secret ? value.value : value)) return null;
  if (value instanceof Secret) return cut(value.shown);
  if (typeof value === 'string') return cut(value);
  return Array.isArray(value) ? cut(value.join(', ')) : (value as AuditValue);
}

/** Copies the text: in V8, a part of a text keeps the whole text in memory. */
function cut(text: string): string {
  return text.length > maxTextLength ? Buffer.from(truncate(text, maxTextLength)).toString() : text;
}
