// Counts and durations for people.

let grouped: Intl.NumberFormat | undefined;

/** `10,000`. */
export function formatNumber(number: number): string {
  return (grouped ??= new Intl.NumberFormat('en')).format(number);
}

/** `1 webhook`, `2 deliveries`. */
export function formatCount(count: number, noun: string): string {
  return `${formatNumber(count)} ${count === 1 ? noun : `${noun}s`.replace(/([^aeiou])ys$/, '$1ies')}`;
}

const units = [
  { name: 'day', ms: 86_400_000 },
  { name: 'hour', ms: 3_600_000 },
  { name: 'minute', ms: 60_000 },
  { name: 'second', ms: 1000 },
] as const;

/** In whole units of the largest that fits; durations under ten seconds have more digits. */
export function formatDuration(ms: number): string {
  if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`;
  if (ms < 10_000) return `${Math.floor(ms / 100) / 10} s`;
  const unit = units.find((candidate) => ms >= candidate.ms) ?? units[3];
  return formatCount(Math.floor(ms / unit.ms), unit.name);
}

export function formatAgo(ms: number): string {
  return ms < 10_000 ? 'just now' : `${formatDuration(ms)} ago`;
}
