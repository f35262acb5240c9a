// The HTTP client of a controlled server: failure rules answer in place of receivers, the clock waits for every
// attempt, and all attempts can be ended.
import { toErrorResponse } from '../http/errors.ts';
import { ServiceError } from '../lib/errors.ts';
import { RequestError } from '../lib/request-error.ts';
import type { Runtime } from '../lib/runtime.ts';
import type { HttpClient, OutgoingRequest, ReceivedResponse } from '../webhooks/sending/http-client.ts';
import type { ControlClock } from './clock.ts';
import { type FailureRules, type Respond, refusals } from './rule.ts';

type FailingClientOptions = {
  readonly client: HttpClient;
  readonly clock: ControlClock;
  readonly rules: FailureRules;
  readonly real: Pick<Runtime, 'sleep'>;
};

export class FailingClient implements HttpClient {
  readonly #options: FailingClientOptions;
  readonly #attempts = new Set<AbortController>();

  constructor(options: FailingClientOptions) {
    this.#options = options;
  }

  async post(request: OutgoingRequest, signal: AbortSignal): Promise<ReceivedResponse> {
    const attempt = new AbortController();
    const abort = () => attempt.abort(signal.reason);
    signal.addEventListener('abort', abort);
    this.#attempts.add(attempt);
    try {
      return await this.#options.clock.track(this.#post(request, attempt.signal));
    } finally {
      signal.removeEventListener('abort', abort);
      this.#attempts.delete(attempt);
    }
  }

  close(): Promise<void> {
    return this.#options.client.close();
  }

  endAttempts(): void {
    for (const attempt of this.#attempts) attempt.abort();
  }

  async #post(request: OutgoingRequest, signal: AbortSignal): Promise<ReceivedResponse> {
    const { client, rules, real } = this.#options;
    const { origin } = new URL(request.url);
    const respond = rules.take(
      ({ receiver }) => receiver !== undefined && new URL(receiver).origin === origin,
    );
    if (respond?.delayMs !== undefined) await real.sleep(respond.delayMs, signal);
    return respond && isAnswer(respond) ? answerOf(respond) : client.post(request, signal);
  }
}

/** A rule that only delays lets the request through. */
function isAnswer({ status, error, disconnect }: Respond): boolean {
  return status !== undefined || error !== undefined || disconnect === true;
}

function answerOf({ status, error }: Respond): ReceivedResponse {
  if (error !== undefined) {
    const response = toErrorResponse(new ServiceError(error, refusals[error].message));
    return { status: response.status, headers: {}, body: Buffer.from(JSON.stringify(response.body)) };
  }
  if (status !== undefined) return { status, headers: {}, body: Buffer.alloc(0) };
  throw new RequestError('The connection was closed before the answer was complete.');
}
