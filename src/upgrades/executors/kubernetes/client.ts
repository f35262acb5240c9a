// Calls of the API server: none waits for ever, what passes is waited for, and what is wrong is told in a sentence.
import {
  ApiException,
  type ConfigurationOptions,
  Observable,
  type RequestContext,
} from '@kubernetes/client-node';
import { withTimeout } from '../../../lib/async.ts';
import type { Runtime } from '../../../runtime.ts';

const callMs = 5_000;

/** After a restart the API server may not know for a while whom it has known before. */
const refusalMs = 10_000;

const backOffMs = { least: 100, most: 2_000 };

/** How long a caller bears with a server that is away, and when it wants to know nothing more. */
export type Patience = { readonly ms: number; readonly signal: AbortSignal };

/** `code` is the HTTP status; undefined where there was no answer. */
export class ClusterError extends Error {
  readonly code: number | undefined;

  constructor(code: number | undefined, reason: string) {
    const how = code === undefined ? 'cannot be reached' : `refuses (${code})`;
    super(`the API server ${how}: ${reason.replace(/\.$/, '')}.`);
    this.name = 'ClusterError';
    this.code = code;
  }
}

export type Call = <T>(ask: (options: ConfigurationOptions) => Promise<T>, patience: Patience) => Promise<T>;

/** `onTrouble` is told of what is asked again. */
export function createCalls(
  runtime: Pick<Runtime, 'now' | 'sleep'>,
  onTrouble: (message: string) => void,
): Call {
  let hasSucceeded = false;

  /** Ends at its time whatever the library does. */
  const once = <T>(ask: (options: ConfigurationOptions) => Promise<T>, stopping: AbortSignal): Promise<T> =>
    withTimeout(runtime, (signal) => ask(sending((request) => request.setSignal(signal))), {
      ms: callMs,
      message: `there was no answer within ${callMs / 1000} seconds`,
      stopping,
    });

  return async (ask, { ms, signal }) => {
    const since = runtime.now();
    let refusedSince: number | undefined;
    for (let tries = 0; ; tries += 1) {
      signal.throwIfAborted();
      try {
        const answer = await once(ask, signal);
        hasSucceeded = true;
        return answer;
      } catch (error) {
        signal.throwIfAborted();
        const failure = readFailure(error);
        const isRefusal = failure.code === 401 || failure.code === 403;
        refusedSince = isRefusal ? (refusedSince ?? runtime.now()) : undefined;
        const left =
          refusedSince === undefined
            ? patienceFor(failure.code, ms) - (runtime.now() - since)
            : (hasSucceeded ? Math.min(refusalMs, ms) : 0) - (runtime.now() - refusedSince);
        if (left <= 0) throw failure;
        if (tries === 0) onTrouble(failure.message);
        await runtime.sleep(Math.min(left, backOffMs.most, backOffMs.least * 2 ** tries), signal);
      }
    }
  };
}

/** Options of the library under which each request is seen to before it is sent. */
function sending(prepare: (request: RequestContext) => void): ConfigurationOptions {
  const pre = (request: RequestContext) => {
    prepare(request);
    return new Observable(Promise.resolve(request));
  };
  return {
    middleware: [{ pre, post: (response) => new Observable(Promise.resolve(response)) }],
    middlewareMergeStrategy: 'append',
  };
}

/** The library would call an object a JSON Patch. */
export function asStrategicMerge(options: ConfigurationOptions): ConfigurationOptions {
  const { middleware = [] } = sending((request) =>
    request.setHeaderParam('Content-Type', 'application/strategic-merge-patch+json'),
  );
  return { ...options, middleware: [...(options.middleware ?? []), ...middleware] };
}

function patienceFor(code: number | undefined, ms: number): number {
  return code === undefined || code === 429 || code >= 500 ? ms : 0;
}

function readFailure(error: unknown): ClusterError {
  if (error instanceof ApiException)
    return new ClusterError(error.code, readStatus(error.body) ?? 'no reason given');
  return new ClusterError(undefined, (error as Error).message);
}

/** The message of a Status, which comes as text. */
function readStatus(body: unknown): string | undefined {
  try {
    const status = (typeof body === 'string' ? JSON.parse(body) : body) as { message?: unknown } | null;
    return typeof status?.message === 'string' && status.message !== '' ? status.message : undefined;
  } catch {
    return undefined;
  }
}
