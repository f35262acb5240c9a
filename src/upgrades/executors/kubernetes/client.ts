// Sends requests to the API server: each has a timeout, temporary failures are retried, and errors have a message
// for people.
import {
  ApiException,
  type ConfigurationOptions,
  Observable,
  type RequestContext,
} from '@kubernetes/client-node';
import { TimeoutError, withTimeout } from '../../../lib/async.ts';
import { isJsonObject, parseJson } from '../../../lib/json.ts';
import type { Runtime } from '../../../lib/runtime.ts';
import { truncate } from '../../../lib/text.ts';

/** For one try. A change may wait for the admission webhooks of the cluster, for up to the limit of its API server. */
const timeoutsMs = { read: 10_000, change: 60_000 };

/**
 * For a moment after a restart the API server refuses valid credentials, because it has not loaded its permissions
 * yet.
 */
const refusalRetryMs = 10_000;

/** Jobs, problems and the log contain the reason. */
const maxReason = 1000;

const backoffMs = { min: 100, max: 2_000 };

export type RetryOptions = {
  /** How long to repeat a request that gets no answer or an error. A refused one is repeated for ten seconds at most. */
  readonly retryMs: number;
  readonly signal?: AbortSignal;
  /** Before a request is repeated. */
  readonly onWait?: (reason: string) => void;
  /** Of all requests of a run. Once a refusal has lasted for ten seconds, no refused one is repeated. */
  readonly refusals?: { haveLasted: boolean };
};

export class ClusterError extends Error {
  readonly code: number | undefined;

  constructor(
    code: number | undefined,
    reason: string,
    what = code === undefined ? 'the API server cannot be reached' : `the API server refuses (${code})`,
  ) {
    super(`${what}: ${truncate(reason, maxReason).replace(/\.$/, '')}.`);
    this.name = 'ClusterError';
    this.code = code;
  }
}

export function hasStatus(error: unknown, ...codes: readonly number[]): error is ClusterError {
  return error instanceof ClusterError && error.code !== undefined && codes.includes(error.code);
}

type ApiRequest<T> = (options: ConfigurationOptions) => Promise<T>;

export class ApiClient {
  readonly #runtime: Pick<Runtime, 'now' | 'elapsed' | 'sleep'>;
  readonly #onRetry: (message: string) => void;

  constructor(runtime: Pick<Runtime, 'now' | 'elapsed' | 'sleep'>, onRetry: (message: string) => void) {
    this.#runtime = runtime;
    this.#onRetry = onRetry;
  }

  /** `what` names the request in the error of a server that is too slow, for example `list deployments`. */
  async send<T>(
    what: string,
    request: ApiRequest<T>,
    { retryMs, signal, onWait, refusals }: RetryOptions,
  ): Promise<T> {
    const startedAt = this.#runtime.elapsed();
    let refusedSince: number | undefined;
    for (let tries = 0; ; tries += 1) {
      signal?.throwIfAborted();
      try {
        return await this.#sendOnce(request, isChange(what) ? timeoutsMs.change : timeoutsMs.read, signal);
      } catch (error) {
        signal?.throwIfAborted();
        const now = this.#runtime.elapsed();
        const failure =
          error instanceof TimeoutError ? slowError(what, now - startedAt, tries + 1) : toClusterError(error);
        refusedSince = hasStatus(failure, 401, 403) ? (refusedSince ?? now) : undefined;
        const until =
          refusedSince === undefined
            ? startedAt + (isTemporary(failure) ? retryMs : 0)
            : refusedSince + (refusals?.haveLasted ? 0 : Math.min(refusalRetryMs, retryMs));
        if (now >= until) {
          if (refusals && refusedSince !== undefined) refusals.haveLasted = true;
          throw failure;
        }
        if (tries === 0) this.#onRetry(failure.message);
        onWait?.(failure.message.replace(/\.$/, ''));
        await this.#runtime.sleep(Math.min(until - now, backoffMs.max, backoffMs.min * 2 ** tries), signal);
      }
    }
  }

  /** The library has no timeout of its own: without this, a request could wait forever. */
  #sendOnce<T>(request: ApiRequest<T>, ms: number, stopping: AbortSignal | undefined): Promise<T> {
    const work = (signal: AbortSignal) => request(beforeSending((outgoing) => outgoing.setSignal(signal)));
    const timeout = { ms, message: 'no answer' };
    return withTimeout(this.#runtime, work, { ...timeout, ...(stopping && { stopping }) });
  }
}

/** Others must be quick: a Lease that is not renewed in time expires. */
function isChange(what: string): boolean {
  return /^patch |^create jobs$/.test(what);
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

export function isTemporary({ code }: ClusterError): boolean {
  return code === undefined || code === 429 || code >= 500;
}

function slowError(what: string, ms: number, tries: number): ClusterError {
  const times = tries === 1 ? '' : ` in ${tries} tries`;
  const reason = `there was no answer to "${what}" within ${Math.round(ms / 1000)} seconds${times}`;
  return new ClusterError(undefined, reason, 'the API server is too slow');
}

/** An API server says no more. A namespace that is deleted loses its ServiceAccounts first. */
const refusedCredentials =
  'it does not accept the credentials of Steward. Their ServiceAccount or namespace may have been deleted';

function toClusterError(error: unknown): ClusterError {
  if (error instanceof ApiException) {
    const overloaded = error.code === 429 ? 'it is overloaded' : 'no reason given';
    const reason = parseStatusMessage(error.body) ?? overloaded;
    return new ClusterError(error.code, error.code === 401 ? refusedCredentials : reason);
  }
  return new ClusterError(undefined, (error as Error).message);
}

/** The library leaves the Status object of an error as JSON text. */
function parseStatusMessage(body: unknown): string | undefined {
  const status = typeof body === 'string' ? parseJson(body) : body;
  const message = isJsonObject(status) ? status.message : undefined;
  return typeof message === 'string' && message !== '' ? message : undefined;
}
