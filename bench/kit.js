// Functions that the benchmarks share: statistics, comparisons and the table of results.

const sorted = (numbers) => [...numbers].sort((a, b) => a - b);

export const median = (numbers) => sorted(numbers)[Math.floor(numbers.length / 2)];

export const p99 = (numbers) => sorted(numbers)[Math.ceil(numbers.length * 0.99) - 1];

export const print = (line) => process.stdout.write(`${line}\n`);

export function listening(child) {
  return new Promise((resolve, reject) => {
    let output = '';
    child.stderr.on('data', (chunk) => {
      output += chunk;
      const found = /listens on (http:\S+)/.exec(output);
      if (found) resolve(found[1]);
    });
    child.once('exit', () => reject(new Error(`${child.spawnargs.join(' ')} ended: ${output}`)));
  });
}

/** The ratio is the median of the ratios of the rounds, because the load of the machine changes between rounds. */
export function compare(rounds) {
  return {
    baseline: median(rounds.map(({ baseline }) => baseline)),
    measured: median(rounds.map(({ measured }) => measured)),
    ratio: median(rounds.map(({ baseline, measured }) => measured / baseline)),
  };
}

export function printTable(rows) {
  const printRow = (figure, required, measured, verdict) =>
    print(`${figure.padEnd(62)}${required.padEnd(16)}${measured.padEnd(10)}${verdict}`);
  printRow('figure', 'required', 'measured', '');
  for (const { figure, required, measured, isMet } of rows) {
    printRow(figure, required, measured, isMet ? 'ok' : 'missed');
  }
  if (rows.some(({ isMet }) => !isMet)) process.exitCode = 1;
}
