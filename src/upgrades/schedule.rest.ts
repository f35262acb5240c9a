// When a job may start: the fields of a start time, and its check.
import { ServiceError, invalid } from '../lib/errors.ts';
import { boolean, moment } from '../rest/field-types.ts';
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

/** Throws if no job may start at that time, or now without one. */
export function requireStart(reader: Reader, { startAt, ignoreWindows }: StartTime, at: number): void {
  if (startAt !== undefined) {
    const problem =
      startAt <= at
        ? 'must be in the future.'
        : startAt > at + maxAheadMs
          ? 'must be at most 90 days ahead.'
          : undefined;
    if (problem !== undefined) throw invalid([{ field: 'startAt', message: problem }]);
  }
  const closed = ignoreWindows === true ? undefined : reasonClosed(reader, startAt ?? at, 'the job');
  if (closed !== undefined) throw new ServiceError('conflict', closed);
}
