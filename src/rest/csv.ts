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
  const pieces = toText(header, rows);
  // The first piece is made before the answer begins, so that an error can still be answered as one.
  const first = await pieces.next();
  void reply.headers({
    'content-type': 'text/csv; charset=utf-8; header=present',
    'content-disposition': `attachment; filename="${fileName}"`,
    'cache-control': 'no-store',
    'cross-origin-resource-policy': 'same-origin',
  });
  if (reply.request.method !== 'HEAD')
    return reply.send(Readable.from(startingWith(first.value ?? '', pieces)));
  await pieces.return();
  return reply.send(null);
}

/** Closes the pieces, and with them the rows, when the reader is closed. */
async function* startingWith(first: string, pieces: AsyncGenerator<string, void>): AsyncGenerator<string> {
  try {
    yield first;
    yield* pieces;
  } finally {
    await pieces.return();
  }
}

async function* toText(header: CsvRow, rows: AsyncIterable<CsvRow>): AsyncGenerator<string, void> {
  let piece = formatRow(header);
  let left = maxRows;
  for await (const row of rows) {
    piece += formatRow(row);
    left -= 1;
    if (left === 0) break;
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
