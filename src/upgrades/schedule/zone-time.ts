// Local time of a time zone and instants, with the zones that this runtime knows: its data is updated with Node.js. A
// zone is a name, because an offset has no summer time.
//
// A local time is the number of milliseconds since 1970-01-01T00:00 of the same clock: in UTC it is the instant.
import { dayMs } from '../../lib/runtime.ts';

export const minuteMs = 60_000;

/** The runtime also knows abbreviations that are no IANA names: its BST is the time of Bangladesh. */
const ianaAbbreviations = 'CET EET EST GB GMT HST MET MST NZ PRC ROC ROK UCT UTC WET'.split(' ');

export function isTimeZone(name: string): boolean {
  if (!/^[a-z][a-z0-9_+/-]{1,63}$/i.test(name) || /^SystemV/i.test(name)) return false;
  if (name.length <= 3 && !ianaAbbreviations.includes(name.toUpperCase())) return false;
  try {
    newFormat(name);
    return true;
  } catch {
    return false;
  }
}

function newFormat(timeZone: string): Intl.DateTimeFormat {
  return new Intl.DateTimeFormat('en-US', { timeZone, hour: 'numeric', timeZoneName: 'longOffset' });
}

/** The offsets of some UTC days and of the days around them, which contain the whole local days in every zone. */
type Offsets = {
  readonly before: number;
  readonly after: number;
  /** The instant at which the offset changes. No zone changes twice within these days. */
  readonly changesAt: number;
};

/** A format takes much longer to create than to use, and using it takes much longer than reading a map. */
type Zone = { readonly format: Intl.DateTimeFormat; readonly offsets: Map<number, Offsets> };

const zones = new Map<string, Zone>();
const maxZones = 100;
const maxOffsets = 1000;
/** A zone that stops its summer time for Ramadan changes twice within four weeks. */
const daysTogether = 8;

function offsetsAround(timeZone: string, day: number): Offsets {
  let zone = zones.get(timeZone);
  if (!zone) {
    if (zones.size >= maxZones) zones.clear();
    zone = { format: newFormat(timeZone), offsets: new Map() };
    zones.set(timeZone, zone);
  }
  const first = Math.floor(day / daysTogether) * daysTogether;
  let offsets = zone.offsets.get(first);
  if (!offsets) {
    if (zone.offsets.size >= maxOffsets) zone.offsets.clear();
    offsets = readOffsets(zone.format, (first - 1) * dayMs, (first + daysTogether + 1) * dayMs);
    zone.offsets.set(first, offsets);
  }
  return offsets;
}

function readOffsets(format: Intl.DateTimeFormat, from: number, to: number): Offsets {
  const before = offsetAt(format, from);
  const after = offsetAt(format, to);
  if (before === after) return { before, after, changesAt: Infinity };
  let [last, changesAt] = [from, to];
  while (changesAt - last > 1000) {
    const middle = 1000 * Math.floor((last + changesAt) / 2000);
    if (offsetAt(format, middle) === before) last = middle;
    else changesAt = middle;
  }
  return { before, after, changesAt };
}

/** Local time minus UTC. */
function offsetAt(format: Intl.DateTimeFormat, at: number): number {
  const [, sign, hours = 0, minutes = 0, seconds = 0] =
    /GMT([+-])(\d\d):(\d\d)(?::(\d\d))?/.exec(format.format(at)) ?? [];
  const size = 1000 * ((Number(hours) * 60 + Number(minutes)) * 60 + Number(seconds));
  return sign === '-' ? -size : size;
}

export function toLocal(timeZone: string, at: number): number {
  const { before, after, changesAt } = offsetsAround(timeZone, Math.floor(at / dayMs));
  return at + (at < changesAt ? before : after);
}

/**
 * The first instant at which the clock of the zone shows this time or a later one. So a time that the clock skips means
 * the next one that exists, and of a time that exists twice the first counts.
 */
export function toInstant(timeZone: string, local: number): number {
  const { before, after, changesAt } = offsetsAround(timeZone, Math.floor(local / dayMs));
  return local - before < changesAt ? local - before : Math.max(changesAt, local - after);
}
