// Requests of `steward import-catalog` to another server. Any address is allowed, because the person who runs the
// command names it.
import { Agent, request } from 'undici';
import { readBody } from '../lib/read-body.ts';
import { RequestError, toRequestError } from '../lib/request-error.ts';

export const answerLimits = { timeoutMs: 10_000, bytes: 16 * 1024 ** 2, allTimeoutMs: 600_000 };

type RemoteRequest = {
  readonly method: 'GET' | 'POST';
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
};

type RemoteAnswer = { readonly status: number; readonly body: Buffer };

export type Send = (url: URL, request: RemoteRequest) => Promise<RemoteAnswer>;

/** Throws for anything that is no address of a server. */
export function readAddress(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url || !/^https?:$/.test(url.protocol) || url.username !== '' || url.password !== '')
    throw new RequestError(`The address must be an http or https address without user and password: ${text}`);
  return url;
}

/** Sends requests, follows no redirects, and limits the time and the size of each answer, and the time of all. */
export async function withRemote<T>(use: (send: Send) => Promise<T>, limits = answerLimits): Promise<T> {
  // A connection for each request: a server may close an idle one at the moment in which the next request uses it.
  const agent = new Agent({ pipelining: 0 });
  const endsAt = performance.now() + limits.allTimeoutMs;
  try {
    return await use((url, given) => sendOne({ agent, endsAt, limits }, url, given));
  } finally {
    await agent.destroy();
  }
}

async function sendOne(
  { agent, endsAt, limits }: { agent: Agent; endsAt: number; limits: typeof answerLimits },
  url: URL,
  { method, headers = {}, body }: RemoteRequest,
): Promise<RemoteAnswer> {
  const where = url.origin + url.pathname;
  const leftMs = Math.max(0, Math.ceil(endsAt - performance.now()));
  const signal = AbortSignal.timeout(Math.min(limits.timeoutMs, leftMs));
  try {
    const answer = await request(url, {
      dispatcher: agent,
      method,
      headers: { 'accept-encoding': 'identity', ...headers },
      body: body ?? null,
      signal,
    });
    if (answer.statusCode >= 300 && answer.statusCode < 400) throw redirected(answer);
    return { status: answer.statusCode, body: await readBody(answer.body, limits.bytes) };
  } catch (error) {
    const late =
      leftMs < limits.timeoutMs
        ? `All answers together were not complete within ${limits.allTimeoutMs / 1000} seconds.`
        : `The answer was not complete within ${limits.timeoutMs / 1000} seconds.`;
    const { message } = signal.aborted ? new RequestError(late) : toRequestError(error as Error);
    throw new RequestError(`${where}: ${message}`, { cause: error });
  }
}

function redirected({ statusCode, headers }: { statusCode: number; headers: { location?: unknown } }) {
  const { location } = headers;
  const target = typeof location === 'string' ? ` to ${location}` : '';
  return new RequestError(`The server redirects${target} (${statusCode}). Give the address itself.`);
}
