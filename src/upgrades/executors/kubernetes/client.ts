// Sends requests to the API server: each has a timeout, temporary failures are retried, and errors have a message for people.
import {
  ApiException,
  type ConfigurationOptions,
  Observable,
  type RequestContext,
} from '@kubernetes/client-node';
import { withTimeout } from '../../../lib/async.ts';
import { truncate } from '../../../lib/text.ts';
import type { Runtime } from '../../../runtime.ts';

const requestTimeoutMs = 5_000;

/** For a moment after a restart the API server may refuse credentials that it accepted before. */
const refusalRetryMs = 10_000;

/** After a refusal that lasted, others are not retried for this time. Without this, each workload of a job would wait for its own refusal. */
const lastingRefusalMs = 60_000;

/** Jobs, problems and the log contain the reason. */
const maxReason = 1000;

const backoffMs = { min: 100, max: 2_000 };

export type RetryOptions = {
  readonly retryMs: number;
  readonly signal?: AbortSignal;
};

export class ClusterError extends Error {
  readonly code: number | undefined;

  constructor(code: number | undefined, reason: string) {
    const what = code === undefined ? 'the API server cannot be reached' : `the API server refuses (${code})`;
    const hint = code === 401 ? '; it does not accept the credentials of Steward' : '';
    super(`${what}: ${truncate(reason, maxReason).replace(/\.$/, '')}${hint}.`);
    this.name = 'ClusterError';
    this.code = code;
  }
}

export function hasStatus(error: unknown, ...codes: readonly number[]): error is ClusterError {
  return error instanceof ClusterError && error.code !== undefined && codes.includes(error.code);
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

  async send<T>(request: ApiRequest<T>, { retryMs, signal }: RetryOptions): Promise<T> {
    const startedAt = this.#runtime.now();
    let refusedSince: number | undefined;
    for (let tries = 0; ; tries += 1) {
      signal?.throwIfAborted();
      try {
        const response = await this.#sendOnce(request, signal);
        this.#hasSucceeded = true;
        return response;
      } catch (error) {
        signal?.throwIfAborted();
        const failure = toClusterError(error);
        const now = this.#runtime.now();
        refusedSince = hasStatus(failure, 401, 403) ? (refusedSince ?? now) : undefined;
        const remainingMs =
          refusedSince === undefined
            ? (isTemporary(failure) ? retryMs : 0) - (now - startedAt)
            : (this.#retriesRefusals(now) ? Math.min(refusalRetryMs, retryMs) : 0) - (now - refusedSince);
        if (remainingMs <= 0) {
          if (refusedSince !== undefined && now - refusedSince >= refusalRetryMs) this.#refusedAt = now;
          throw failure;
        }
        if (tries === 0) this.#onRetry(failure.message);
        await this.#runtime.sleep(Math.min(remainingMs, backoffMs.max, backoffMs.min * 2 ** tries), signal);
      }
    }
  }

  #retriesRefusals(now: number): boolean {
    return this.#hasSucceeded && now - this.#refusedAt >= lastingRefusalMs;
  }

  /** The library has no timeout of its own: without this, a request could wait forever. */
  #sendOnce<T>(request: ApiRequest<T>, stopping: AbortSignal | undefined): Promise<T> {
    const work = (signal: AbortSignal) => request(beforeSending((outgoing) => outgoing.setSignal(signal)));
    return withTimeout(this.#runtime, work, {
      ms: requestTimeoutMs,
      message: `there was no answer within ${requestTimeoutMs / 1000} seconds`,
      ...(stopping && { stopping }),
    });
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
