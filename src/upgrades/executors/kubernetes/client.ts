// Sends requests to the API server: each has a timeout, temporary failures are retried, and errors have a message
// for people.
import {
  ApiException,
  type ConfigurationOptions,
  Observable,
  type RequestContext,
} from '@kubernetes/client-node';
import { TimeoutError, withTimeout } from '../../../lib/async.ts';
import type { Runtime } from '../../../lib/runtime.ts';
import { truncate } from '../../../lib/text.ts';

/**
 * A request that gets no answer in time gets twice the time in its next try, so that a slow API server can answer
 * too.
 */
const requestTimeoutMs = { min: 5_000, max: 30_000 };

/**
 * For a moment after a restart the API server refuses valid credentials, because it has not loaded its permissions
 * yet.
 */
const refusalRetryMs = 10_000;

/**
 * After a refusal that lasted, others are not retried for this time. Without this, each workload of a job would
 * wait for its own refusal.
 */
const lastingRefusalMs = 60_000;

/** Jobs, problems and the log contain the reason. */
const maxReason = 1000;

const backoffMs = { min: 100, max: 2_000 };

export type RetryOptions = {
  /** How long to repeat a request that finds the server closed or gets an error. */
  readonly retryMs: number;
  /** Until when to repeat a request that gets no answer in time. Default: for `retryMs`. */
  readonly slowUntil?: number;
  /** The time for the answer to the first try. */
  readonly timeoutMs?: number;
  /**
   * Retries refusals even before the first answer: the process may have taken over a job while the server
   * restarted.
   */
  readonly retriesFirstRefusal?: boolean;
  readonly signal?: AbortSignal;
};

export class ClusterError extends Error {
  readonly code: number | undefined;

  constructor(
    code: number | undefined,
    reason: string,
    what = code === undefined ? 'the API server cannot be reached' : `the API server refuses (${code})`,
  ) {
    const hint = code === 401 ? '; it does not accept the credentials of Steward' : '';
    super(`${what}: ${truncate(reason, maxReason).replace(/\.$/, '')}${hint}.`);
    this.name = 'ClusterError';
    this.code = code;
  }
}

export function hasStatus(error: unknown, ...codes: readonly number[]): error is ClusterError {
  return error instanceof ClusterError && error.code !== undefined && codes.includes(error.code);
}

/** Whether the server may accept the same request later. */
export function mayBeAcceptedLater(error: unknown): error is ClusterError {
  return error instanceof ClusterError && (isTemporary(error) || hasStatus(error, 401, 403));
}

type ApiRequest<T> = (options: ConfigurationOptions) => Promise<T>;

export class ApiClient {
  readonly #runtime: Pick<Runtime, 'now' | 'sleep'>;
  readonly #onRetry: (message: string) => void;
  #hasSucceeded = false;
  #refusedAt = -Infinity;

  constructor(runtime: Pick<Runtime, 'now' | 'sleep'>, onRetry: (message: string) => void) {
    this.#runtime = runtime;
    this.#onRetry = onRetry;
  }

  /** `what` names the request in the error of a server that is too slow, for example `list deployments`. */
  async send<T>(what: string, request: ApiRequest<T>, retry: RetryOptions): Promise<T> {
    const startedAt = this.#runtime.now();
    const { retryMs, slowUntil = startedAt + retryMs, retriesFirstRefusal = false, signal } = retry;
    let { timeoutMs = requestTimeoutMs.min } = retry;
    let refusedSince: number | undefined;
    for (let tries = 0; ; tries += 1) {
      signal?.throwIfAborted();
      try {
        const response = await this.#sendOnce(request, timeoutMs, signal);
        this.#hasSucceeded = true;
        return response;
      } catch (error) {
        signal?.throwIfAborted();
        const now = this.#runtime.now();
        const isSlow = error instanceof TimeoutError;
        if (isSlow) timeoutMs = Math.min(requestTimeoutMs.max, timeoutMs * 2, slowUntil - now);
        const failure = isSlow ? slowError(what, now - startedAt) : toClusterError(error);
        refusedSince = hasStatus(failure, 401, 403) ? (refusedSince ?? now) : undefined;
        const patientUntil = isSlow ? slowUntil : startedAt + (isTemporary(failure) ? retryMs : 0);
        const remainingMs =
          refusedSince === undefined
            ? patientUntil - now
            : (this.#retriesRefusals(now, retriesFirstRefusal) ? Math.min(refusalRetryMs, retryMs) : 0) -
              (now - refusedSince);
        if (remainingMs <= 0) {
          if (refusedSince !== undefined && now - refusedSince >= refusalRetryMs) this.#refusedAt = now;
          throw failure;
        }
        if (tries === 0) this.#onRetry(failure.message);
        await this.#runtime.sleep(Math.min(remainingMs, backoffMs.max, backoffMs.min * 2 ** tries), signal);
      }
    }
  }

  #retriesRefusals(now: number, retriesFirst: boolean): boolean {
    return (this.#hasSucceeded || retriesFirst) && now - this.#refusedAt >= lastingRefusalMs;
  }

  /** The library has no timeout of its own: without this, a request could wait forever. */
  #sendOnce<T>(request: ApiRequest<T>, ms: number, stopping: AbortSignal | undefined): Promise<T> {
    const work = (signal: AbortSignal) => request(beforeSending((outgoing) => outgoing.setSignal(signal)));
    return withTimeout(this.#runtime, work, { ms, message: 'no answer', ...(stopping && { stopping }) });
  }
}

function beforeSending(prepare: (request: RequestContext) => void): ConfigurationOptions {
  const pre = (request: RequestContext) => {
    prepare(request);
    return new Observable(Promise.resolve(request));
  };
  return {
    middleware: [{ pre, post: (response) => new Observable(Promise.resolve(response)) }],
    middlewareMergeStrategy: 'append',
  };
}

/** Without this, the library sends an object as a JSON Patch. */
export function asStrategicMerge(options: ConfigurationOptions): ConfigurationOptions {
  const { middleware = [] } = beforeSending((request) =>
    request.setHeaderParam('Content-Type', 'application/strategic-merge-patch+json'),
  );
  return { ...options, middleware: [...(options.middleware ?? []), ...middleware] };
}

function isTemporary({ code }: ClusterError): boolean {
  return code === undefined || code === 429 || code >= 500;
}

function slowError(what: string, ms: number): ClusterError {
  const reason = `there was no answer to "${what}" within ${Math.round(ms / 1000)} seconds`;
  return new ClusterError(undefined, reason, 'the API server is too slow');
}

function toClusterError(error: unknown): ClusterError {
  if (error instanceof ApiException)
    return new ClusterError(error.code, parseStatusMessage(error.body) ?? 'no reason given');
  return new ClusterError(undefined, (error as Error).message);
}

/** The library leaves the Status object of an error as JSON text. */
function parseStatusMessage(body: unknown): string | undefined {
  try {
    const status = (typeof body === 'string' ? JSON.parse(body) : body) as { message?: unknown } | null;
    return typeof status?.message === 'string' && status.message !== '' ? status.message : undefined;
  } catch {
    return undefined;
  }
}
