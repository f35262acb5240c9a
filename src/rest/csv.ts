// Exports of resources as CSV (RFC 4180), streamed.
import type { FastifyReply } from 'fastify';
import { Readable } from 'node:stream';
import type { Call, CsvExport, CsvRow } from './resource.ts';

const maxRows = 100_000;

export async function sendCsv<S>(
  reply: FastifyReply,
  { fileName, header, rows }: CsvExport<S>,
  call: Call<S, never>,
): Promise<FastifyReply> {
  const batches = rows(call)[Symbol.asyncIterator]();
  // The first batch is read before the answer begins, so that an error can still be answered as one.
  const first = await batches.next();
  return reply
    .headers({
      'content-type': 'text/csv; charset=utf-8; header=present',
      'content-disposition': `attachment; filename="${fileName}"`,
      'cache-control': 'no-store',
      'cross-origin-resource-policy': 'same-origin',
    })
    .send(reply.request.method === 'HEAD' ? '' : Readable.from(toText(header, first, batches)));
}

async function* toText(
  header: CsvRow,
  first: IteratorResult<readonly CsvRow[]>,
  batches: AsyncIterator<readonly CsvRow[]>,
): AsyncIterable<string> {
  yield formatRow(header);
  let left = maxRows;
  for (let next = first; next.done !== true; next = await batches.next()) {
    const shown = next.value.slice(0, left);
    left -= shown.length;
    yield shown.map(formatRow).join('');
    if (left === 0) return;
  }
}

export function formatRow(row: CsvRow): string {
  return `${row.map(formatCell).join(',')}\r\n`;
}

/** A spreadsheet would run a text that begins with one of these characters as a formula. */
const formulaStart = /^[=+\-@\t\r]/;

function formatCell(value: string | number | null): string {
  const text = value === null ? '' : String(value);
  const safe = typeof value === 'string' && formulaStart.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
