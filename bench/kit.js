// Functions that the benchmarks share: statistics, comparisons and the table of results.

const sorted = (numbers) => [...numbers].sort((a, b) => a - b);

export const median = (numbers) => sorted(numbers)[Math.floor(numbers.length / 2)];

/** `share` is between 0 and 1: 0.99 returns the number that 99 % of all numbers do not exceed. */
export const percentile = (numbers, share) =>
  sorted(numbers)[Math.max(0, Math.ceil(numbers.length * share) - 1)];

export const p99 = (numbers) => percentile(numbers, 0.99);

export const perSecond = (count, ms) => (count * 1000) / ms;

export const print = (line) => process.stdout.write(`${line}\n`);

/** The ratio is the median of the ratios of the rounds, because the load of the machine changes between rounds. */
export function compare(rounds) {
  return {
    baseline: median(rounds.map(({ baseline }) => baseline)),
    measured: median(rounds.map(({ measured }) => measured)),
    ratio: median(rounds.map(({ baseline, measured }) => measured / baseline)),
  };
}

/** A row without `required` shows a figure that has no bound. */
export function printTable(rows) {
  const verdictOf = ({ required, isMet }) => (required === undefined ? '' : isMet ? 'ok' : 'missed');
  const lines = [
    ['figure', 'required', 'measured', ''],
    ...rows.map((row) => [row.figure, row.required ?? '', row.measured, verdictOf(row)]),
  ];
  const widths = lines[0].map((_, column) => Math.max(...lines.map((line) => line[column].length)) + 2);
  for (const line of lines)
    print(
      line
        .map((cell, n) => cell.padEnd(widths[n]))
        .join('')
        .trimEnd(),
    );
  if (rows.some((row) => verdictOf(row) === 'missed')) process.exitCode = 1;
}
