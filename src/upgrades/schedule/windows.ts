// Maintenance windows: the times of the week at which an upgrade or a rollback may start.
//
// A window begins on each of its days at `from` and ends at `to`, on the next day if `to` is not after `from`, in the
// local time of its zone. Without windows, a job may start at any time.
import type { Cell, Reader } from '../../store/state.ts';
import { dayMs, minuteMs, toInstant, toLocal } from './zone-time.ts';

export const weekdays = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'] as const;

export type Weekday = (typeof weekdays)[number];

export type MaintenanceWindow = {
  readonly days: readonly Weekday[];
  /** Such as 22:00. */
  readonly from: string;
  readonly to: string;
  /** The IANA name, such as Europe/Vienna. */
  readonly timeZone: string;
};

export const maxWindows = 20;

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
export type WindowState =
  | { readonly open: true; readonly closesAt: number | null }
  | { readonly open: false; readonly opensAt: number | null };

/**
 * Nearly always the next days decide. A year decides about windows of several zones, which may leave a gap only
 * between their changes to summer time.
 */
const horizonDays = [16, 400];

/** Windows that touch or overlap are one. */
export function windowsAt(windows: readonly MaintenanceWindow[], at: number): WindowState {
  if (windows.length === 0) return { open: true, closesAt: null };
  let state: WindowState = { open: false, opensAt: null };
  for (const days of horizonDays) {
    state = stateIn(openTimes(windows, at, days), at);
    const changesAt = state.open ? state.closesAt : state.opensAt;
    if (changesAt !== null && changesAt <= at + (days - 1) * dayMs) return state;
  }
  return state.open ? { open: true, closesAt: null } : state;
}

type OpenTime = { readonly start: number; readonly end: number };

/** From the day before `at`, in the order of their starts. A window is empty if the clock skips all of it. */
export function openTimes(windows: readonly MaintenanceWindow[], at: number, days: number): OpenTime[] {
  return windows
    .flatMap((window) => {
      const today = Math.floor(toLocal(window.timeZone, at) / dayMs);
      return Array.from({ length: days + 2 }, (_, index) => today - 1 + index)
        .filter((day) => window.days.includes(weekdayOf(day)))
        .map((day) => openTimeOn(window, day));
    })
    .filter(({ start, end }) => start < end)
    .toSorted((one, other) => one.start - other.start);
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

function stateIn(times: readonly OpenTime[], at: number): WindowState {
  let closesAt = at;
  for (const { start, end } of times) {
    if (end <= closesAt) continue;
    if (start > closesAt) return closesAt > at ? { open: true, closesAt } : { open: false, opensAt: start };
    closesAt = end;
  }
  return closesAt > at ? { open: true, closesAt } : { open: false, opensAt: null };
}

/** Why a job may not start at this time. `what` is what starts, such as "the upgrade". Undefined: a window is open. */
export function reasonClosed(reader: Reader, at: number, what: string): string | undefined {
  const state = windowsAt(reader.read(maintenanceWindows), at);
  if (state.open) return undefined;
  const formatInstant = (instant: number) => new Date(instant).toISOString();
  const next = state.opensAt === null ? '' : ` The next one opens at ${formatInstant(state.opensAt)}.`;
  return `No maintenance window is open at ${formatInstant(at)}.${next} ignoreWindows=true starts ${what} anyway.`;
}
