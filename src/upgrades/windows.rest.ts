// REST resource `system/upgrades/config`: the maintenance windows, and whether one is open now. Also the fields of a
// start time, and its check.
import * as z from 'zod';
import { type Problem, ServiceError, requireVersion } from '../lib/errors.ts';
import { formatCount } from '../lib/format.ts';
import { versionOf } from '../lib/json.ts';
import { type Runtime, dayMs } from '../lib/runtime.ts';
import { answerObject, time, toJsonSchema } from '../rest/answer.ts';
import { boolean, moment, refuse, text, version } from '../rest/field-types.ts';
import { operation } from '../rest/operation.ts';
import { succeeded } from '../rest/outcome.ts';
import { type Resource, resource } from '../rest/resource.ts';
import { type Change, compareFields } from '../store/audit-change.ts';
import type { Reader } from '../store/state.ts';
import type { ReadableStore } from '../store/store.ts';
import { ignoreWindowsParts, whenParts } from './pages/start-fields.ts';
import { windowParts, windowsView } from './pages/windows.ts';
import {
  maintenanceWindows,
  maxWindows,
  readWindows,
  reasonClosed,
  weekdays,
  windowSchema,
  windowsAt,
} from './schedule/windows.ts';

const windowAnswer = answerObject('MaintenanceWindow', 'A time of the week at which a job may start.', {
  days: z.array(z.enum(weekdays)).describe('The days on which the window begins.'),
  from: z.string().describe('The local time at which it begins, such as 22:00.'),
  to: z.string().describe('The local time at which it ends; on the next day if it is not after from.'),
  timeZone: z.string().describe('The IANA name of the time zone.'),
});

const windowsAnswer = answerObject('MaintenanceWindows', 'The maintenance windows.', {
  windows: z.array(windowAnswer).describe('Empty: a job may start at any time.'),
  now: z
    .union([
      z.strictObject({
        open: z.literal(true),
        closesAt: time.nullable().describe('When the open windows close. Null: never.'),
      }),
      z.strictObject({
        open: z.literal(false),
        opensAt: time.nullable().describe('When the next window opens.'),
      }),
    ])
    .describe('Whether a job may start now. Windows that touch or overlap count as one.'),
});

const windowsField = text({ to: 16_384, control: 'lines' })
  .transform((list, context) => {
    const read = readWindows(list);
    if ('windows' in read) return read.windows;
    const problems = read.problems.map(({ index, place, message }) =>
      index === undefined ? message : `[${index}]${place}: ${message}`,
    );
    return refuse(context, problems);
  })
  .meta({
    description:
      `All windows: a JSON array of at most ${maxWindows} objects with days, from, to and timeZone. [] removes all windows: ` +
      'a job may then start at any time.',
    contentMediaType: 'application/json',
    contentSchema: toJsonSchema(z.array(windowSchema).max(maxWindows)),
    parts: windowParts,
  });

export function windowsResource({ store, runtime }: { store: ReadableStore; runtime: Runtime }): Resource {
  return resource({
    title: 'Maintenance windows',
    description: 'When upgrades and rollbacks may start.',
    answer: windowsAnswer,
    read: () => {
      const windows = store.read(maintenanceWindows);
      return { windows, now: windowsAt(windows, runtime.now()) };
    },
    view: ({ now }) => windowsView(store.read(maintenanceWindows), now),
    form: 'update',
    operations: {
      update: operation({
        title: 'Update maintenance windows',
        description:
          'Replaces all maintenance windows. They decide about starts only: a running job continues.',
        fields: { windows: windowsField, version: version('The version of the windows in the form.') },
        present: () => {
          const windows = store.read(maintenanceWindows);
          return { windows: JSON.stringify(windows), version: String(versionOf(windows)) };
        },
        run: async ({ values, update }) => {
          const { windows } = values;
          await update((transaction) => {
            const present = versionOf(transaction.read(maintenanceWindows));
            requireVersion('The maintenance windows were', present, values.version);
            transaction.write(maintenanceWindows, windows);
          });
          return succeeded(
            windows.length === 0
              ? 'There are no maintenance windows now.'
              : `${formatCount(windows.length, 'maintenance window')} saved.`,
            { name: 'Maintenance windows', path: ['system', 'upgrades', 'config'] },
          );
        },
      }),
    },
  });
}

export function startFields({ store, runtime }: { store: ReadableStore; runtime: Runtime }) {
  const read = () => ({ windows: store.read(maintenanceWindows), now: runtime.now() });
  return {
    startAt: moment('When to start, at most 90 days ahead').meta({ parts: whenParts(read) }),
    ignoreWindows: boolean()
      .optional()
      .meta({
        description: 'Whether to start also while no maintenance window is open. Default: false.',
        parts: ignoreWindowsParts(read),
      }),
  };
}

export type StartTime = {
  readonly startAt?: number | undefined;
  readonly ignoreWindows?: boolean | undefined;
};

export function startProblems(startAt: number | undefined, at: number): Problem[] {
  if (startAt === undefined) return [];
  if (startAt <= at) return [{ field: 'startAt', message: 'must be in the future.' }];
  if (startAt > at + 90 * dayMs) return [{ field: 'startAt', message: 'must be at most 90 days ahead.' }];
  return [];
}

/** Throws if no window is open at that time, or now without one. */
export function requireWindow(reader: Reader, { startAt, ignoreWindows }: StartTime, at: number): void {
  const closed = ignoreWindows === true ? undefined : reasonClosed(reader, startAt ?? at);
  if (closed === undefined) return;
  const onPage = `No maintenance window is open ${startAt === undefined ? 'now' : 'then'}. Choose another time, or a start outside of the windows.`;
  throw new ServiceError('conflict', closed, { onPage });
}

/** The audit entry says so, also if the job did before. */
export function ignoredWindows(ignoreWindows: boolean): readonly Change[] {
  return ignoreWindows ? compareFields({}, { ignoreWindows }) : [];
}
