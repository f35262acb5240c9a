// Counts requests and how long they took, by method, route and status.
import { type Spread, addTo, createSpread, renderNumbers, renderSpreads } from './metrics-text.ts';

export type CountedRequest = {
  readonly method: string;
  readonly route: string;
  readonly status: number;
  readonly seconds: number;
};

const bounds = [0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10, 60];
const total = { name: 'steward_http_requests_total', help: 'Requests answered.' };
const duration = {
  name: 'steward_http_request_duration_seconds',
  help: 'Time from a request to the end of its answer.',
};

export function createRequestFigures() {
  const byRoute = new Map<string, Map<string, Map<number, Spread>>>();

  function spreadOf({ method, route, status }: CountedRequest): Spread {
    const byMethod = byRoute.get(route) ?? new Map<string, Map<number, Spread>>();
    byRoute.set(route, byMethod);
    const byStatus = byMethod.get(method) ?? new Map<number, Spread>();
    byMethod.set(method, byStatus);
    const spread = createSpread(`method="${method}",route="${escape(route)}",status="${status}"`, bounds);
    byStatus.set(status, spread);
    return spread;
  }

  return {
    count(request: CountedRequest): void {
      const known = byRoute.get(request.route)?.get(request.method)?.get(request.status);
      addTo(known ?? spreadOf(request), request.seconds);
    },
    render(): string {
      const all = [...byRoute.values()].flatMap((byMethod) =>
        [...byMethod.values()].flatMap((byStatus) => [...byStatus.values()]),
      );
      return renderNumbers('counter', total, all) + renderSpreads(duration, all);
    },
  };
}

function escape(value: string): string {
  return value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n');
}
