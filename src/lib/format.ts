// Counts, lists and durations for people.

/** An integer. Descriptions contain some, so every start would load megabytes of language data for Intl. */
export function formatNumber(number: number): string {
  return String(number).replaceAll(/\d(?=(?:\d{3})+$)/g, '$&,');
}

export function formatCount(count: number, noun: string): string {
  return `${formatNumber(count)} ${count === 1 ? noun : pluralOf(noun)}`;
}

export function pluralOf(noun: string): string {
  return `${noun}s`.replace(/([^aeiou])ys$/, '$1ies');
}

/** Names the first ones only, because a list may have thousands. */
export function formatList(names: readonly string[], maxListed = 20): string {
  const rest = names.length - maxListed;
  return names.slice(0, maxListed).join(', ') + (rest > 0 ? ` and ${formatNumber(rest)} more` : '');
}

export function formatBytes(bytes: number): string {
  if (bytes < 1024) return formatCount(bytes, 'byte');
  const [size, unit] = bytes < 1024 ** 2 ? [bytes / 1024, 'KiB'] : [bytes / 1024 ** 2, 'MiB'];
  return `${size < 10 ? size.toFixed(1) : Math.round(size)} ${unit}`;
}

const units = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1000],
] as const;

/** In the two largest units that it has, next to each other: `45 s`, `1 min 12 s`, `2 h 5 min`, `3 d`. */
export function formatDuration(ms: number): string {
  if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`;
  if (ms < 10_000) return `${Math.floor(ms / 100) / 10} s`;
  const largest = units.findIndex(([, size]) => ms >= size);
  let rest = ms;
  const parts = units.slice(largest, largest + 2).map(([name, size]) => {
    const count = Math.floor(rest / size);
    rest -= count * size;
    return count === 0 ? '' : `${formatNumber(count)} ${name}`;
  });
  return parts.filter(Boolean).join(' ');
}

/** How long ago, within an hour. Then the time of day, after a day with the date, and after half a year the date alone. */
export function formatAgo(at: number, now: number): string {
  const ms = now - at;
  if (ms < 10_000) return 'just now';
  if (ms < 60_000) return `${Math.floor(ms / 1000)} s ago`;
  if (ms < 3_600_000) return `${Math.floor(ms / 60_000)} min ago`;
  const [, day, month, year, time = ''] = new Date(at).toUTCString().split(' ');
  if (ms < 86_400_000) return time.slice(0, 5);
  return `${Number(day)} ${month} ${ms < 180 * 86_400_000 ? time.slice(0, 5) : year}`;
}
