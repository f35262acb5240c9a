// Counts, lists and durations for people.

let grouped: Intl.NumberFormat | undefined;

export function formatNumber(number: number): string {
  return (grouped ??= new Intl.NumberFormat('en')).format(number);
}

export function formatCount(count: number, noun: string): string {
  return `${formatNumber(count)} ${count === 1 ? noun : `${noun}s`.replace(/([^aeiou])ys$/, '$1ies')}`;
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
  { name: 'day', ms: 86_400_000 },
  { name: 'hour', ms: 3_600_000 },
  { name: 'minute', ms: 60_000 },
  { name: 'second', ms: 1000 },
] as const;

export function formatDuration(ms: number): string {
  if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`;
  if (ms < 10_000) return `${Math.floor(ms / 100) / 10} s`;
  const unit = units.find((candidate) => ms >= candidate.ms) ?? units[3];
  return formatCount(Math.floor(ms / unit.ms), unit.name);
}

export function formatAgo(ms: number): string {
  return ms < 10_000 ? 'just now' : `${formatDuration(ms)} ago`;
}
