// A snapshot: the whole state of a controlled server as one JSON document. A digest protects it, because rows that
// no server has written would make the next one fail in unforeseen ways.
import { createHash } from 'node:crypto';
import type { MemoryDump } from '../app/stores/memory-store.ts';
import type { SignInDump } from '../auth/sign-in-limit.ts';
import { ServiceError, invalidField } from '../lib/errors.ts';
import { isJsonObject } from '../lib/json.ts';
import type { ClockDump } from './clock.ts';
import type { JournalEntry } from './control-client.ts';
import type { Draws } from './random.ts';
import type { RulesDump } from './rule.ts';

export const maxSnapshotBytes = 512 * 1024 ** 2;
const format = 1;

export type SnapshotState = {
  readonly clock: ClockDump;
  /** How far the values of SEED have been used. */
  readonly draws: Draws;
  /** What is left of SIMULATED_FAILURES. Null: fails always. */
  readonly simulatedFailures: Readonly<Record<string, number | null>>;
  readonly rules: RulesDump;
  readonly signIns: SignInDump;
  readonly requests: readonly JournalEntry[];
  readonly store: MemoryDump;
};

export function writeSnapshot(version: string, state: SnapshotState): string {
  try {
    const content = JSON.stringify(state);
    const text = `{"format":${format},"version":${JSON.stringify(version)},"digest":"${digestOf(content)}","state":${content}}`;
    if (Buffer.byteLength(text) > maxSnapshotBytes) throw tooLargeSnapshot();
    return text;
  } catch (error) {
    // The longest text that the JavaScript engine can hold has about the same size.
    throw error instanceof RangeError ? tooLargeSnapshot() : error;
  }
}

/** Rejects anything but a snapshot of this version. */
export function readSnapshot(version: string, given: unknown): SnapshotState {
  if (!isJsonObject(given))
    throw new ServiceError('invalid', 'The body must be a snapshot that GET /control/snapshot returned.');
  if (given.format !== format) throw invalidField('format', `must be ${format}.`);
  if (given.version !== version)
    throw invalidField('version', `must be ${version}, the version of this server.`);
  if (given.digest !== digestOf(JSON.stringify(given.state)))
    throw invalidField('digest', 'must match the state: a snapshot must not be changed.');
  return given.state as SnapshotState;
}

/** `undefined` in place of a state has a digest too, which nothing matches. */
function digestOf(content: string | undefined): string {
  return createHash('sha256')
    .update(content ?? 'none')
    .digest('hex');
}

function tooLargeSnapshot(): ServiceError {
  return new ServiceError(
    'too-large',
    `The state is larger than a snapshot may be: ${maxSnapshotBytes} bytes.`,
  );
}
