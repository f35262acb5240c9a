// Exports of resources as CSV (RFC 4180), streamed.
import type { FastifyReply } from 'fastify';
import { Readable } from 'node:stream';
import type { CsvExport, CsvRow } from './resource.ts';

const maxRows = 100_000;

/** A client that does not read keeps a few pieces of about this length in memory, however long the rows are. */
const pieceLength = 64 * 1024;

export async function sendCsv(
  reply: FastifyReply,
  { fileName, header, rows }: CsvExport,
): Promise<FastifyReply> {
  const iterator = rows[Symbol.asyncIterator]();
  // The first row is read before the answer begins, so that an error can still be answered as one.
  const first = await iterator.next();
  return reply
    .headers({
      'content-type': 'text/csv; charset=utf-8; header=present',
      'content-disposition': `attachment; filename="${fileName}"`,
      'cache-control': 'no-store',
      'cross-origin-resource-policy': 'same-origin',
    })
    .send(reply.request.method === 'HEAD' ? '' : Readable.from(toText(header, first, iterator)));
}

async function* toText(
  header: CsvRow,
  first: IteratorResult<CsvRow>,
  others: AsyncIterator<CsvRow>,
): AsyncIterable<string> {
  let piece = formatRow(header);
  let left = maxRows;
  for (let next = first; next.done !== true && left > 0; next = await others.next()) {
    piece += formatRow(next.value);
    left -= 1;
    if (piece.length < pieceLength) continue;
    yield piece;
    piece = '';
    // The memory store answers without a turn of the event loop, so many exports would stop all other work.
    await new Promise(setImmediate);
  }
  yield piece;
}

export function formatRow(row: CsvRow): string {
  return `${row.map(formatCell).join(',')}\r\n`;
}

/**
 * A spreadsheet would run a text that begins with one of these characters as a formula. One that splits cells at `;`
 * would also run what follows a `;`.
 */
const formulaStart = /(^|;"*)(?=[=+\-@\t\r])/g;

function formatCell(value: string | number | null): string {
  const text = value === null ? '' : String(value);
  const safe = typeof value === 'string' ? text.replaceAll(formulaStart, "$1'") : text;
  return /[",;\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
