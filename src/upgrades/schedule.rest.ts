// When a job may start: the fields of a start time, and its check.
import { type Problem, ServiceError } from '../lib/errors.ts';
import { boolean, moment } from '../rest/field-types.ts';
import { type Change, compareFields } from '../store/audit-change.ts';
import type { Reader } from '../store/state.ts';
import { maxAheadMs } from './jobs/job-schedule.ts';
import { reasonClosed } from './schedule/windows.ts';

export const startAtField = moment().describe(
  'When to start, in milliseconds since the epoch, or as 2026-11-18T07:30 in UTC. At most 90 days ahead.',
);

export const ignoreWindowsField = boolean()
  .optional()
  .describe('Whether to start also while no maintenance window is open. Default: false.');

export type StartTime = {
  readonly startAt?: number | undefined;
  readonly ignoreWindows?: boolean | undefined;
};

export function startProblems(startAt: number | undefined, at: number): Problem[] {
  if (startAt === undefined) return [];
  if (startAt <= at) return [{ field: 'startAt', message: 'must be in the future.' }];
  if (startAt > at + maxAheadMs) return [{ field: 'startAt', message: 'must be at most 90 days ahead.' }];
  return [];
}

/** Throws if no window is open at that time, or now without one. */
export function requireWindow(reader: Reader, { startAt, ignoreWindows }: StartTime, at: number): void {
  const closed = ignoreWindows === true ? undefined : reasonClosed(reader, startAt ?? at, 'the job');
  if (closed !== undefined) throw new ServiceError('conflict', closed);
}

/** The audit entry says so, also if the job did before. */
export function ignoredWindows(ignoreWindows: boolean): readonly Change[] {
  return ignoreWindows ? compareFields({}, { ignoreWindows }) : [];
}
