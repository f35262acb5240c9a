// Counts requests and how long they took, by method, route and status. Every request comes by here, so it is by hand: the library makes
// a text of the labels each time.

export type CountedRequest = {
  readonly method: string;
  readonly route: string;
  readonly status: number;
  readonly seconds: number;
};

const bounds = [0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10, 60];
const total = 'steward_http_requests_total';
const duration = 'steward_http_request_duration_seconds';

type Figures = { readonly labels: string; count: number; seconds: number; readonly within: number[] };

export function createRequestFigures() {
  const byRoute = new Map<string, Map<string, Map<number, Figures>>>();

  function figuresOf({ method, route, status }: CountedRequest): Figures {
    const byMethod = byRoute.get(route) ?? new Map<string, Map<number, Figures>>();
    byRoute.set(route, byMethod);
    const byStatus = byMethod.get(method) ?? new Map<number, Figures>();
    byMethod.set(method, byStatus);
    const labels = `method="${method}",route="${escape(route)}",status="${status}"`;
    const figures = { labels, count: 0, seconds: 0, within: bounds.map(() => 0) };
    byStatus.set(status, figures);
    return figures;
  }

  return {
    count(request: CountedRequest): void {
      const known = byRoute.get(request.route)?.get(request.method)?.get(request.status);
      const figures = known ?? figuresOf(request);
      figures.count += 1;
      figures.seconds += request.seconds;
      let bucket = 0;
      while (request.seconds > (bounds[bucket] ?? Infinity)) bucket += 1;
      figures.within[bucket] = (figures.within[bucket] ?? 0) + 1;
    },
    /** In the format that monitoring systems read. */
    render(): string {
      const all = [...byRoute.values()].flatMap((byMethod) =>
        [...byMethod.values()].flatMap((byStatus) => [...byStatus.values()]),
      );
      return [
        `# HELP ${total} Requests answered.`,
        `# TYPE ${total} counter`,
        ...all.map(({ labels, count }) => `${total}{${labels}} ${count}`),
        '',
        `# HELP ${duration} Time from a request to the end of its answer.`,
        `# TYPE ${duration} histogram`,
        ...all.flatMap(renderHistogram),
        '\n',
      ].join('\n');
    },
  };
}

/** Each bucket counts those before it too. */
function renderHistogram({ labels, count, seconds, within }: Figures): string[] {
  let sum = 0;
  const buckets = bounds.map((bound, index) => {
    sum += within[index] ?? 0;
    return `${duration}_bucket{le="${bound}",${labels}} ${sum}`;
  });
  return [
    ...buckets,
    `${duration}_bucket{le="+Inf",${labels}} ${count}`,
    `${duration}_sum{${labels}} ${seconds}`,
    `${duration}_count{${labels}} ${count}`,
  ];
}

function escape(value: string): string {
  return value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n');
}
