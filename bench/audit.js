// Measures the audit trail with 1,000,000 entries. The option --scale F multiplies their number.
import { parseArgs } from 'node:util';
import { measureEntries } from './audit/entries.js';
import { print, printTable } from './kit.js';
import { startDatabases } from './storage/databases.js';

const { values: given } = parseArgs({ options: { scale: { type: 'string', default: '1' } } });
const databases = await startDatabases();
const entries = Math.round(1_000_000 * Number(given.scale));
const rows = await measureEntries({ databases, entries, report: print });
await databases.stop();
printTable(rows);
