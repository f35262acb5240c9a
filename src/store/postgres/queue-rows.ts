// Builds the SQL that reads rows of queues, and converts the results.
import type { Queue } from '../transaction.ts';
import { columnsOf, listsOf, nameOf, toRow, unquoted } from './columns.ts';
import type { Secrets } from './secrets.ts';

/** SQL condition: the row `q` of the queue $1 has no claim. */
export const isFree = 'not exists (select from claims c where c.queue = $1 and c.key = q.key)';

/** The select list for rows of the queue table `q`, with their lists as JSON. */
export function selectionOf(queue: Queue<never>): string {
  const lists = listsOf(queue.shape).map(({ field, table, columns }) => {
    const pairs = columns.map(({ name }) => `'${unquoted(name)}', l.${name}`).join(', ');
    return `(select json_agg(json_build_object(${pairs}) order by l.number)
       from ${table} l where l.key = q.key) as ${nameOf(field)}`;
  });
  const columns = columnsOf(queue.shape).map(({ name }) => `q.${name}`);
  return ['q.key', 'q.owner', ...columns, ...lists].join(', ');
}

export function rowOf<T>(
  queue: Queue<T>,
  record: Record<string, unknown> & { readonly key: string },
  secrets: Secrets,
): T {
  return toRow(queue, record, secrets) as T;
}
