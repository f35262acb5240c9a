// Maintenance windows: local times of all zones, and when windows open and close, compared with a walk over the clock.
// FUZZ_RUNS sets the number of random lists of windows (default 60). fast-check prints its seed if the two differ.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type MaintenanceWindow,
  maintenanceWindows,
  reasonClosed,
  weekdays,
  windowsAt,
} from '../../src/upgrades/schedule/windows.ts';
import { isTimeZone, toInstant, toLocal } from '../../src/upgrades/schedule/zone-time.ts';
import type { Reader } from '../../src/store/state.ts';

const minute = 60_000;
const quarter = 15 * minute;
const day = 86_400_000;
const allZones = [...Intl.supportedValuesOf('timeZone'), 'UTC'];
const runs = Number(process.env.FUZZ_RUNS ?? 60);

/** Reads the clock of a zone in another way than the rules do. */
function newClock(timeZone: string): (at: number) => number {
  const numeric = { month: 'numeric', day: 'numeric', minute: 'numeric', second: 'numeric' } as const;
  const format = new Intl.DateTimeFormat('en-US', {
    timeZone,
    year: 'numeric',
    hour: 'numeric',
    hourCycle: 'h23',
    ...numeric,
  });
  return (at) => {
    const [month = 0, date = 0, ...rest] = (format.format(at).match(/\d+/g) ?? []).map(Number);
    const [year = 0, hours, minutes, seconds] = rest;
    return Date.UTC(year, month - 1, date, hours, minutes, seconds);
  };
}

/** The middle of each UTC day of 2026 on which the clock of the zone changes. */
function changeDays(timeZone: string): number[] {
  const clock = newClock(timeZone);
  const offset = (at: number) => clock(at) - at;
  return Array.from({ length: 365 }, (_, index) => Date.UTC(2026, 0, 1) + index * day)
    .filter((at) => offset(at) !== offset(at + day))
    .map((at) => at + day / 2);
}

const zoneChanges = allZones.map((timeZone) => ({ timeZone, changes: changeDays(timeZone) }));

/** The clock of a zone around an instant, every 15 minutes: all offsets of this year are multiples of it. */
function walk(timeZone: string, around: number, days: number) {
  const clock = newClock(timeZone);
  const first = Math.floor(around / day - days) * day;
  return Array.from({ length: (2 * days * day) / quarter }, (_, index) => {
    const at = first + index * quarter;
    return { at, local: clock(at) };
  });
}

const window = (
  days: MaintenanceWindow['days'],
  from: string,
  to: string,
  timeZone: string,
): MaintenanceWindow => ({
  days,
  from,
  to,
  timeZone,
});
const open = (closesAt: string | null) => ({
  open: true,
  closesAt: closesAt === null ? null : Date.parse(closesAt),
});
const closed = (opensAt: string) => ({ open: false, opensAt: Date.parse(opensAt) });
const stateAt = (windows: readonly MaintenanceWindow[], at: string) => windowsAt(windows, Date.parse(at));

describe('local time', () => {
  it('agrees with the clock of every zone around every change', () => {
    expect(zoneChanges.filter(({ changes }) => changes.length > 0).length).toBeGreaterThan(100);
    for (const { timeZone, changes } of zoneChanges) {
      for (const change of changes.length > 0 ? changes : [Date.UTC(2026, 10, 18)]) {
        const steps = walk(timeZone, change, 2);
        expect(steps.filter(({ at, local }) => toLocal(timeZone, at) !== local)).toEqual([]);
        const midnight = Math.floor(change / day) * day;
        const locals = Array.from({ length: 144 }, (_, index) => midnight - day / 2 + index * quarter);
        const firstAt = (local: number) => steps.find((step) => step.local >= local)?.at;
        expect([timeZone, locals.filter((local) => toInstant(timeZone, local) !== firstAt(local))]).toEqual([
          timeZone,
          [],
        ]);
      }
    }
  });

  it.each([
    ['does not exist', '2026-03-29T02:30', '2026-03-29T01:00:00Z'],
    ['is the first after the change', '2026-03-29T03:00', '2026-03-29T01:00:00Z'],
    ['exists twice', '2026-10-25T02:30', '2026-10-25T00:30:00Z'],
    ['is the first after the repeated hour', '2026-10-25T03:00', '2026-10-25T02:00:00Z'],
  ])('converts a time that %s', (_, local, instant) => {
    expect(toInstant('Europe/Vienna', Date.parse(`${local}Z`))).toBe(Date.parse(instant));
  });

  it('skips a day that a zone skipped', () => {
    const midnight = Date.parse('2011-12-30T10:00:00Z');
    expect(toInstant('Pacific/Apia', Date.parse('2011-12-30T12:00Z'))).toBe(midnight);
    expect(toInstant('Pacific/Apia', Date.parse('2011-12-31T00:00Z'))).toBe(midnight);
  });

  it('knows IANA names only', () => {
    const names = [...allZones, 'Asia/Kolkata', 'Etc/GMT+5', 'CET', 'Japan', 'EST5EDT', 'europe/vienna'];
    expect(names.filter((name) => !isTimeZone(name))).toEqual([]);
    const others = ['', '+01:00', 'GMT+1', 'Z', 'BST', 'pst', 'Europe/Atlantis', ' UTC', 'Factory'];
    expect(others.filter(isTimeZone)).toEqual([]);
  });
});

describe('windows', () => {
  const weekend = [window(['sat', 'sun'], '22:00', '04:00', 'Europe/Vienna')];

  it('are always open if there are none', () => {
    expect(stateAt([], '2026-11-18T12:00:00Z')).toEqual(open(null));
  });

  it('name the day on which they begin', () => {
    expect(stateAt(weekend, '2026-11-18T12:00:00Z')).toEqual(closed('2026-11-21T21:00:00Z'));
    expect(stateAt(weekend, '2026-11-21T20:59:59.999Z')).toEqual(closed('2026-11-21T21:00:00Z'));
    expect(stateAt(weekend, '2026-11-21T21:00:00Z')).toEqual(open('2026-11-22T03:00:00Z'));
    expect(stateAt(weekend, '2026-11-22T02:59:59.999Z')).toEqual(open('2026-11-22T03:00:00Z'));
    expect(stateAt(weekend, '2026-11-22T03:00:00Z')).toEqual(closed('2026-11-22T21:00:00Z'));
    expect(stateAt(weekend, '2026-11-23T02:00:00Z')).toEqual(open('2026-11-23T03:00:00Z'));
    expect(stateAt(weekend, '2026-11-23T03:00:00Z')).toEqual(closed('2026-11-28T21:00:00Z'));
  });

  it('last a day if they end when they begin', () => {
    const monday = [window(['mon'], '06:00', '06:00', 'UTC')];
    expect(stateAt(monday, '2026-11-17T05:59:00Z')).toEqual(open('2026-11-17T06:00:00Z'));
    expect(stateAt(monday, '2026-11-17T06:00:00Z')).toEqual(closed('2026-11-23T06:00:00Z'));
  });

  it('are one if they touch or overlap', () => {
    const touching = [
      window(['fri'], '18:00', '00:00', 'UTC'),
      window(['sat'], '00:00', '08:00', 'UTC'),
      window(['sat'], '02:00', '05:00', 'America/New_York'),
    ];
    expect(stateAt(touching, '2026-11-20T18:00:00Z')).toEqual(open('2026-11-21T10:00:00Z'));
  });

  it('never close if they cover the week', () => {
    expect(stateAt([window(weekdays, '00:00', '00:00', 'Europe/Vienna')], '2026-11-18T12:00:00Z')).toEqual(
      open(null),
    );
  });

  it('close between the changes of two zones, months ahead', () => {
    const halves = [
      window(weekdays, '00:00', '12:00', 'Europe/Vienna'),
      window(weekdays, '06:00', '18:00', 'America/New_York'),
    ];
    expect(stateAt(halves, '2026-11-18T12:00:00Z')).toEqual(open('2027-03-14T22:00:00Z'));
  });

  it('skip a day on which the clock skips them', () => {
    const skipped = [window(['sun'], '02:00', '03:00', 'Europe/Vienna')];
    expect(stateAt(skipped, '2026-03-23T00:00:00Z')).toEqual(closed('2026-04-05T00:00:00Z'));
    expect(stateAt(skipped, '2026-03-29T01:00:00Z')).toEqual(closed('2026-04-05T00:00:00Z'));
  });

  it('begin or end when the skipped hour has passed', () => {
    const begins = [window(['sun'], '02:30', '03:30', 'Europe/Vienna')];
    expect(stateAt(begins, '2026-03-29T01:00:00Z')).toEqual(open('2026-03-29T01:30:00Z'));
    const ends = [window(['sun'], '01:30', '02:30', 'Europe/Vienna')];
    expect(stateAt(ends, '2026-03-29T00:30:00Z')).toEqual(open('2026-03-29T01:00:00Z'));
  });

  it('use the first of two hours', () => {
    const repeated = [window(['sun'], '02:15', '02:45', 'Europe/Vienna')];
    expect(stateAt(repeated, '2026-10-25T00:15:00Z')).toEqual(open('2026-10-25T00:45:00Z'));
    expect(stateAt(repeated, '2026-10-25T01:15:00Z')).toEqual(closed('2026-11-01T01:15:00Z'));
  });

  it('agree with a walk over the clocks of their zones', { timeout: 300_000 }, () => {
    const times = Array.from({ length: 96 }, (_, index) =>
      new Date(index * quarter).toISOString().slice(11, 16),
    );
    const anyZone = fc.constantFrom(...zoneChanges);
    const anyTime = fc.constantFrom(...times);
    const anyDays = fc.subarray([...weekdays], { minLength: 1 });
    const anyWindow = fc.record({ zone: anyZone, days: anyDays, from: anyTime, to: anyTime });
    const input = fc.tuple(
      fc.array(anyWindow, { minLength: 1, maxLength: 3 }),
      fc.nat(),
      fc.integer({ min: -96, max: 96 }),
    );
    fc.assert(
      fc.property(input, ([given, pick, step]) => {
        const changes = given.flatMap(({ zone }) => zone.changes);
        const around = (changes[pick % (changes.length || 1)] ?? Date.UTC(2026, 10, 18)) + step * quarter;
        const windows = given.map(({ zone, days, from, to }) => window(days, from, to, zone.timeZone));
        expect(windowsAt(windows, around)).toEqual(walkState(windows, around));
      }),
      { numRuns: runs },
    );
  });

  /** Without a change within nine days, the answer of the rules counts if its change is later. */
  function walkState(windows: readonly MaintenanceWindow[], at: number) {
    const walkDays = 9;
    const last = Math.floor(at / day + walkDays) * day;
    const times = windows.flatMap(({ days, from, to, timeZone }) => {
      const steps = walk(timeZone, at, walkDays + 2);
      const firstAt = (local: number) => steps.find((step) => step.local >= local)?.at ?? Infinity;
      const midnights = new Set(steps.slice(96, -96).map(({ local }) => Math.floor(local / day) * day));
      return [...midnights].flatMap((midnight) => {
        const name = new Date(midnight).toUTCString().slice(0, 3).toLowerCase();
        if (!days.includes(name as MaintenanceWindow['days'][number])) return [];
        const start = firstAt(Date.parse(`${new Date(midnight).toISOString().slice(0, 10)}T${from}Z`));
        const endDay = midnight + (to > from ? 0 : day);
        return [
          [start, firstAt(Date.parse(`${new Date(endDay).toISOString().slice(0, 10)}T${to}Z`))],
        ] as const;
      });
    });
    const isOpen = (moment: number) => times.some(([start, end]) => start <= moment && moment < end);
    const isOpenNow = isOpen(at);
    let next = at;
    while (next < last && isOpen(next) === isOpenNow) next += quarter;
    if (next < last) return isOpenNow ? { open: true, closesAt: next } : { open: false, opensAt: next };
    const state = windowsAt(windows, at);
    const changesAt = state.open ? state.closesAt : state.opensAt;
    expect(state.open).toBe(isOpenNow);
    expect(changesAt ?? Infinity).toBeGreaterThanOrEqual(last);
    return state;
  }
});

describe('the reason against a start', () => {
  const reader = (windows: readonly MaintenanceWindow[]) =>
    ({ read: (cell: unknown) => (cell === maintenanceWindows ? windows : undefined) }) as Reader;
  const saturday = [window(['sat'], '22:00', '04:00', 'Europe/Vienna')];

  it('names the next window', () => {
    expect(reasonClosed(reader(saturday), Date.parse('2026-11-18T12:00:00Z'))).toBe(
      'No maintenance window is open at 2026-11-18T12:00:00.000Z. The next one opens at 2026-11-21T21:00:00.000Z. ' +
        'ignoreWindows=true starts the job anyway.',
    );
  });

  it('is undefined while a window is open', () => {
    expect(reasonClosed(reader(saturday), Date.parse('2026-11-21T22:00:00Z'))).toBeUndefined();
    expect(reasonClosed(reader([]), 0)).toBeUndefined();
  });
});
