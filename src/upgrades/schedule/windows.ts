// Maintenance windows: the times of the week at which an upgrade or a rollback may start.
//
// A window begins on each of its days at `from` and ends at `to`, on the next day if `to` is not after `from`, in the
// local time of its zone. Without windows, a job may start at any time.
import * as z from 'zod';
import { maxProblems } from '../../lib/errors.ts';
import { type DeepReadonly, parseJson } from '../../lib/json.ts';
import type { Cell, Reader } from '../../store/state.ts';
import { isTimeZone, minuteMs, toInstant, toLocal } from './zone-time.ts';
import { dayMs } from '../../lib/runtime.ts';

export const weekdays = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'] as const;

type Weekday = (typeof weekdays)[number];

const timeRule = 'must be a time such as 22:00.';
const timeOfDay = z.string(timeRule).regex(/^(?:[01]\d|2[0-3]):[0-5]\d$/, timeRule);
const daysRule = `must be an array of different days: ${weekdays.join(', ')}.`;
const zoneRule = 'must be the name of a time zone such as Europe/Vienna.';

export const windowSchema = z.strictObject(
  {
    days: z
      .array(z.enum(weekdays, `must be one of ${weekdays.join(', ')}.`), daysRule)
      .min(1, daysRule)
      .refine((days) => new Set(days).size === days.length, daysRule),
    from: timeOfDay,
    to: timeOfDay,
    timeZone: z.string(zoneRule).refine(isTimeZone, zoneRule),
  },
  {
    error: (issue) =>
      issue.code === 'unrecognized_keys'
        ? 'must have no other keys than days, from, to and timeZone.'
        : 'must be an object with days, from, to and timeZone.',
  },
);

export type MaintenanceWindow = DeepReadonly<z.output<typeof windowSchema>>;

export const maxWindows = 20;

type WindowProblem = {
  /** The index of the window; undefined if the problem is the list. */
  readonly index: number | undefined;
  /** The place in the window, such as `.days[1]`. */
  readonly place: string;
  /** What of the window is wrong. Empty: the window. */
  readonly key: string;
  readonly message: string;
};

export function readWindows(
  text: string,
): { readonly windows: readonly MaintenanceWindow[] } | { readonly problems: readonly WindowProblem[] } {
  const list = parseJson(text);
  if (!Array.isArray(list) || list.length > maxWindows) {
    const message = `must be a JSON array of at most ${maxWindows} windows.`;
    return { problems: [{ index: undefined, place: '', key: '', message }] };
  }
  const problems: WindowProblem[] = [];
  const windows = list.flatMap((entry, index) => {
    const read = windowSchema.safeParse(entry);
    for (const { path, message } of read.error?.issues ?? []) {
      const place = path.map((key) => (typeof key === 'number' ? `[${key}]` : `.${String(key)}`)).join('');
      problems.push({ index, place, key: String(path[0] ?? ''), message });
    }
    return read.data ?? [];
  });
  return problems.length > 0 ? { problems: problems.slice(0, maxProblems) } : { windows };
}

export const maintenanceWindows: Cell<readonly MaintenanceWindow[]> = {
  name: 'maintenanceWindows',
  initial: [],
  auditFields: (windows) =>
    Object.fromEntries(windows.map((window, index) => [`windows[${index}]`, formatWindow(window)])),
};

export function formatWindow({ days, from, to, timeZone }: MaintenanceWindow): string {
  return `${days.join(', ')} ${from}–${to} ${timeZone}`;
}

/** Null: never. */
type WindowState =
  | { readonly open: true; readonly closesAt: number | null }
  | { readonly open: false; readonly opensAt: number | null };

/**
 * Nearly always the next days decide. A year decides about windows of several zones, which may leave a gap only
 * between their changes to summer time.
 */
const horizonDays = [16, 400];

export function windowsAt(windows: readonly MaintenanceWindow[], at: number): WindowState {
  if (windows.length === 0) return { open: true, closesAt: null };
  const last = lastStates.get(windows);
  if (last && at >= last.from && at < last.until) return last.state;
  const state = findState(windows, at);
  const until = (state.open ? state.closesAt : state.opensAt) ?? at + dayMs;
  lastStates.set(windows, { from: at, until, state });
  return state;
}

/** Every page, scrape and look of the scheduler asks, and windows around the clock need the whole year. */
const lastStates = new WeakMap<
  readonly MaintenanceWindow[],
  { readonly from: number; readonly until: number; readonly state: WindowState }
>();

function findState(windows: readonly MaintenanceWindow[], at: number): WindowState {
  for (const days of horizonDays) {
    const next = openTimes(windows, at, days).find(({ end }) => end > at);
    if (next && next.start > at) return { open: false, opensAt: next.start };
    if (next && next.end <= at + (days - 1) * dayMs) return { open: true, closesAt: next.end };
    if (!next) return { open: false, opensAt: null };
  }
  return { open: true, closesAt: null };
}

export type OpenTime = { readonly start: number; readonly end: number };

/** From the day before `at`, in their order. Windows that touch or overlap are one. */
export function openTimes(windows: readonly MaintenanceWindow[], at: number, days: number): OpenTime[] {
  const merged: { start: number; end: number }[] = [];
  const times = windows.flatMap((window) => timesOf(window, at, days));
  for (const { start, end } of times.sort((one, other) => one.start - other.start)) {
    const last = merged.at(-1);
    if (last && start <= last.end) last.end = Math.max(last.end, end);
    else merged.push({ start, end });
  }
  return merged;
}

/** A window is empty on a day on which the clock skips all of it. */
function timesOf(window: MaintenanceWindow, at: number, days: number): OpenTime[] {
  const today = Math.floor(toLocal(window.timeZone, at) / dayMs);
  return Array.from({ length: days + 2 }, (_, index) => today - 1 + index)
    .filter((day) => window.days.includes(weekdayOf(day)))
    .map((day) => openTimeOn(window, day))
    .filter(({ start, end }) => start < end);
}

/** Day 0 was a Thursday. */
const weekdayOf = (day: number) => weekdays[(((day + 3) % 7) + 7) % 7] as Weekday;

function openTimeOn({ from, to, timeZone }: MaintenanceWindow, day: number): OpenTime {
  const endDay = to > from ? day : day + 1;
  return {
    start: toInstant(timeZone, day * dayMs + minutesOf(from) * minuteMs),
    end: toInstant(timeZone, endDay * dayMs + minutesOf(to) * minuteMs),
  };
}

const minutesOf = (time: string) => Number(time.slice(0, 2)) * 60 + Number(time.slice(3));

/** Why a job may not start at this time. Undefined: a window is open. */
export function reasonClosed(reader: Reader, at: number): string | undefined {
  const state = windowsAt(reader.read(maintenanceWindows), at);
  if (state.open) return undefined;
  const formatInstant = (instant: number) => new Date(instant).toISOString();
  const next = state.opensAt === null ? '' : ` The next one opens at ${formatInstant(state.opensAt)}.`;
  return `No maintenance window is open at ${formatInstant(at)}.${next} ignoreWindows=true starts the job anyway.`;
}
