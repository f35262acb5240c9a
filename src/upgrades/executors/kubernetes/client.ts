// Sends requests to the API server: each has a timeout, temporary failures are retried, and errors have a message
// for people.
import { KubeConfig } from '@kubernetes/client-node';
import { request as requestHttp } from 'node:http';
import { type RequestOptions, request as requestHttps } from 'node:https';
import { delimiter } from 'node:path';
import { text } from 'node:stream/consumers';
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

const methods = {
  get: 'GET',
  list: 'GET',
  create: 'POST',
  patch: 'PATCH',
  update: 'PUT',
  delete: 'DELETE',
} as const;

export type ApiRequest = {
  readonly verb: keyof typeof methods;
  /** For the error of a server that is too slow, for example `deployments/map-server`. */
  readonly object: string;
  readonly path: string;
  readonly body?: object;
};

export type ApiClientOptions = {
  readonly runtime: Pick<Runtime, 'now' | 'elapsed' | 'sleep'>;
  /** Undefined in a pod. */
  readonly kubeconfig: string | undefined;
  readonly onRetry?: (message: string) => void;
};

export class ApiClient {
  readonly #options: ApiClientOptions;
  #config: KubeConfig;
  readonly server: string;
  /** Of the current context. */
  readonly namespace: string;

  constructor(options: ApiClientOptions) {
    this.#options = options;
    this.#config = loadConfig(options.kubeconfig);
    const server = this.#config.getCurrentCluster()?.server;
    if (server === undefined) throw new Error('KUBECONFIG names no cluster in its current context.');
    this.server = server;
    const context = this.#config.getContextObject(this.#config.getCurrentContext());
    this.namespace = context?.namespace ?? 'default';
  }

  /** Requests are repeated, so each must be safe to repeat. */
  async send<T>(request: ApiRequest, { retryMs, signal, onWait, refusals }: RetryOptions): Promise<T> {
    const { runtime, onRetry } = this.#options;
    const startedAt = runtime.elapsed();
    let refusedSince: number | undefined;
    for (let tries = 0; ; tries += 1) {
      signal?.throwIfAborted();
      try {
        const timeout = { ms: isChange(request) ? timeoutsMs.change : timeoutsMs.read, message: 'no answer' };
        const work = (stop: AbortSignal) => this.#sendOnce(request, stop);
        return (await withTimeout(runtime, work, { ...timeout, ...(signal && { stopping: signal }) })) as T;
      } catch (error) {
        signal?.throwIfAborted();
        const now = runtime.elapsed();
        const failure = toClusterError(error, request, now - startedAt, tries + 1);
        if (failure.code === undefined || failure.code === 401) this.#reload();
        refusedSince = hasStatus(failure, 401, 403) ? (refusedSince ?? now) : undefined;
        const until =
          refusedSince === undefined
            ? startedAt + (isTemporary(failure) ? retryMs : 0)
            : refusedSince + (refusals?.haveLasted ? 0 : Math.min(refusalRetryMs, retryMs));
        if (now >= until) {
          if (refusals && refusedSince !== undefined) refusals.haveLasted = true;
          throw failure;
        }
        if (tries === 0) onRetry?.(failure.message);
        onWait?.(failure.message.replace(/\.$/, ''));
        await runtime.sleep(Math.min(until - now, backoffMs.max, backoffMs.min * 2 ** tries), signal);
      }
    }
  }

  async #sendOnce({ verb, path, body }: ApiRequest, signal: AbortSignal): Promise<unknown> {
    const content = body === undefined ? '' : JSON.stringify(body);
    const options: RequestOptions = {
      method: methods[verb],
      signal,
      headers: {
        accept: 'application/json',
        'user-agent': 'steward',
        'content-type': `application/${verb === 'patch' ? 'strategic-merge-patch+json' : 'json'}`,
        'content-length': Buffer.byteLength(content),
      },
    };
    await this.#config.applyToHTTPSOptions(options);
    const url = new URL(this.server.replace(/\/$/, '') + path);
    const request = url.protocol === 'http:' ? requestHttp : requestHttps;
    const { code, answer } = await new Promise<{ code: number; answer: string }>((resolve, reject) => {
      const sent = request(url, options, (received) => {
        text(received).then((answer) => resolve({ code: received.statusCode ?? 0, answer }), reject);
      });
      sent.on('error', reject).end(content);
    });
    if (code >= 300) throw statusError(code, answer);
    return JSON.parse(answer);
  }

  /** The credentials and the certificate authority may have been replaced. It stays the same API server. */
  #reload(): void {
    try {
      const config = loadConfig(this.#options.kubeconfig);
      if (config.getCurrentCluster()?.server === this.server) this.#config = config;
    } catch {
      // Somebody is writing the file.
    }
  }
}

function loadConfig(kubeconfig: string | undefined): KubeConfig {
  const config = new KubeConfig();
  if (kubeconfig === undefined) {
    config.loadFromCluster();
    return config;
  }
  try {
    const [first = '', ...others] = kubeconfig.split(delimiter);
    config.loadFromFile(first);
    for (const file of others) {
      const other = new KubeConfig();
      other.loadFromFile(file);
      config.mergeConfig(other, true);
    }
  } catch (error) {
    // The message of a YAML error quotes the file, which contains tokens. Its reason does not.
    const { reason, message } = error as Error & { reason?: string };
    throw new Error(`KUBECONFIG cannot be read: ${reason ?? message}.`, { cause: error });
  }
  return config;
}

/** Others must be quick: a Lease that is not renewed in time expires. */
function isChange({ verb, object }: ApiRequest): boolean {
  return verb === 'patch' || (verb === 'create' && object === 'jobs');
}

export function isTemporary({ code }: ClusterError): boolean {
  return code === undefined || code === 429 || code >= 500;
}

/** An API server says no more. A namespace that is deleted loses its ServiceAccounts first. */
const refusedCredentials =
  'it does not accept the credentials of Steward. Their ServiceAccount or namespace may have been deleted';

function statusError(code: number, content: string): ClusterError {
  const overloaded = code === 429 ? 'it is overloaded' : 'no reason given';
  const status = parseJson(content);
  const message = isJsonObject(status) && typeof status.message === 'string' ? status.message : '';
  return new ClusterError(code, code === 401 ? refusedCredentials : message || overloaded);
}

function toClusterError(error: unknown, request: ApiRequest, ms: number, tries: number): ClusterError {
  if (error instanceof ClusterError) return error;
  if (!(error instanceof TimeoutError)) return new ClusterError(undefined, (error as Error).message);
  const times = tries === 1 ? '' : ` in ${tries} tries`;
  const what = `${request.verb} ${request.object}`;
  const reason = `there was no answer to "${what}" within ${Math.round(ms / 1000)} seconds${times}`;
  return new ClusterError(undefined, reason, 'the API server is too slow');
}
