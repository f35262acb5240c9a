// What the benches share: a figure out of many, and telling it.

const inOrder = (numbers) => [...numbers].sort((a, b) => a - b);

export const median = (numbers) => inOrder(numbers)[Math.floor(numbers.length / 2)];

export const p99 = (numbers) => inOrder(numbers)[Math.ceil(numbers.length * 0.99) - 1];

export const tell = (line) => process.stdout.write(`${line}\n`);

/** Where a server says that it listens, on its standard error. */
export function listening(child) {
  return new Promise((resolve, reject) => {
    let said = '';
    child.stderr.on('data', (chunk) => {
      said += chunk;
      const found = /listens on (http:\S+)/.exec(said);
      if (found) resolve(found[1]);
    });
    child.once('exit', () => reject(new Error(`${child.spawnargs.join(' ')} ended: ${said}`)));
  });
}

/** The ratio is the median of the rounds' own, since other work of the machine comes and goes. */
export function compare(rounds) {
  return {
    baseline: median(rounds.map(({ baseline }) => baseline)),
    measured: median(rounds.map(({ measured }) => measured)),
    ratio: median(rounds.map(({ baseline, measured }) => measured / baseline)),
  };
}

/** Figures with what is required of them; ends with 1 when one is missed. */
export function tellTable(rows) {
  const tellRow = (figure, required, measured, verdict) =>
    tell(`${figure.padEnd(62)}${required.padEnd(16)}${measured.padEnd(10)}${verdict}`);
  tellRow('figure', 'required', 'measured', '');
  for (const { figure, required, measured, isMet } of rows) {
    tellRow(figure, required, measured, isMet ? 'ok' : 'missed');
  }
  if (rows.some(({ isMet }) => !isMet)) process.exitCode = 1;
}
