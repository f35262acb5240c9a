// Figures in the text that monitoring systems read. Kept by hand, since every request is counted and the library that could do it
// makes a text of the labels each time.

/** How often something took how long; `within` counts by the bounds, and beyond the last. */
export type Spread = {
  readonly labels: string;
  readonly bounds: readonly number[];
  count: number;
  seconds: number;
  readonly within: number[];
};

export function createSpread(labels: string, bounds: readonly number[]): Spread {
  return { labels, bounds, count: 0, seconds: 0, within: [...bounds, Infinity].map(() => 0) };
}

export function addTo(spread: Spread, seconds: number): void {
  spread.count += 1;
  spread.seconds += seconds;
  let bucket = 0;
  while (seconds > (spread.bounds[bucket] ?? Infinity)) bucket += 1;
  spread.within[bucket] = (spread.within[bucket] ?? 0) + 1;
}

type Described = { readonly name: string; readonly help: string };

export function renderSpreads({ name, help }: Described, spreads: readonly Spread[]): string {
  const lines = spreads.flatMap(({ labels, bounds, count, seconds, within }) => {
    // Each bucket counts those before it too.
    let sum = 0;
    const buckets = bounds.map((bound, index) => {
      sum += within[index] ?? 0;
      return `${name}_bucket{le="${bound}",${labels}} ${sum}`;
    });
    const whole = [`${name}_bucket{le="+Inf",${labels}} ${count}`, `${name}_sum{${labels}} ${seconds}`];
    return [...buckets, ...whole, `${name}_count{${labels}} ${count}`];
  });
  return render('histogram', name, help, lines);
}

/** `labels` are empty where there is only one of the name. */
export function renderNumbers(
  kind: 'counter' | 'gauge',
  { name, help }: Described,
  numbers: readonly { readonly labels: string; readonly count: number }[],
): string {
  const lines = numbers.map(({ labels, count }) => `${name}${labels === '' ? '' : `{${labels}}`} ${count}`);
  return render(kind, name, help, lines);
}

function render(kind: string, name: string, help: string, lines: readonly string[]): string {
  return [`# HELP ${name} ${help}`, `# TYPE ${name} ${kind}`, ...lines, '', ''].join('\n');
}
