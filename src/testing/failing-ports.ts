// The HTTP client and the executor of a controlled server, which failure rules delay and let fail.
import { setMaxListeners } from 'node:events';
import { toErrorResponse } from '../http/errors.ts';
import { RequestError } from '../lib/request-error.ts';
import type { Runtime } from '../lib/runtime.ts';
import type { Executor, StepContext } from '../upgrades/executors/executor.ts';
import type { HttpClient, OutgoingRequest, ReceivedResponse } from '../webhooks/sending/http-client.ts';
import type { ControlClock } from './clock.ts';
import { type FailureRules, type Match, type Respond, typicalError } from './rule.ts';

type FailingClientOptions = {
  readonly client: HttpClient;
  readonly clock: ControlClock;
  readonly rules: FailureRules;
  readonly real: Pick<Runtime, 'sleep'>;
  /** Ends all attempts: the server is reset, restored or stopped. */
  readonly ended: AbortSignal;
};

/** Failure rules answer in place of receivers, and the clock waits for every attempt. */
export function createFailingClient({ client, clock, rules, real, ended }: FailingClientOptions): HttpClient {
  // Without this, Node warns about the eleventh attempt that listens to the signal.
  setMaxListeners(0, ended);

  async function post(request: OutgoingRequest, signal: AbortSignal): Promise<ReceivedResponse> {
    const { origin } = new URL(request.url);
    const respond = rules.take(
      ({ receiver }) => receiver !== undefined && new URL(receiver).origin === origin,
    );
    if (respond?.delayMs !== undefined) await real.sleep(respond.delayMs, signal);
    return respond && isAnswer(respond) ? answerOf(respond) : client.post(request, signal);
  }

  return {
    async post(request, signal) {
      const attempt = new AbortController();
      const abort = () => attempt.abort(signal.reason);
      if (signal.aborted || ended.aborted) abort();
      // `AbortSignal.any` would leave a reference with `ended`, which outlives many attempts.
      for (const each of [signal, ended]) each.addEventListener('abort', abort);
      try {
        return await clock.track(post(request, attempt.signal));
      } finally {
        for (const each of [signal, ended]) each.removeEventListener('abort', abort);
      }
    },
    load: () => clock.track(client.load()),
    close: () => client.close(),
  };
}

/** A rule that only delays lets the request or the step through. */
function isAnswer({ status, body, headers, error, disconnect }: Respond): boolean {
  return (status ?? body ?? headers ?? error) !== undefined || disconnect === true;
}

function answerOf({ status, body, headers, error, disconnect }: Respond): ReceivedResponse {
  if (error !== undefined) {
    const response = toErrorResponse(typicalError(error));
    return { status: response.status, headers: {}, body: Buffer.from(JSON.stringify(response.body)) };
  }
  if (disconnect === true)
    throw new RequestError('The connection was closed before the answer was complete.');
  return { status: status ?? 200, headers: lowerCased(headers), body: Buffer.from(body ?? '') };
}

function lowerCased(headers: Respond['headers'] = {}) {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
}

type FailingExecutorOptions = {
  readonly executor: Executor;
  readonly rules: FailureRules;
  /** The controlled clock: steps take its time. */
  readonly runtime: Pick<Runtime, 'sleep'>;
};

/** Without a step, a container means its update. */
type Part = { readonly step: string; readonly container?: string };

export function createFailingExecutor({ executor, rules, runtime }: FailingExecutorOptions): Executor {
  async function failByRule(part: Part, { signal }: StepContext): Promise<void> {
    const respond = rules.take((match) => matchesPart(match, part));
    if (!respond) return;
    if (respond.delayMs !== undefined) await runtime.sleep(respond.delayMs, signal);
    if (!isAnswer(respond)) return;
    const { error } = respond;
    const what = part.container === undefined ? '' : ` of ${part.container}`;
    throw new Error(
      `the step ${part.step}${what} was made to fail by test control${error ? ` (${error})` : ''}.`,
    );
  }

  return {
    ...executor,
    async perform(step, context) {
      await failByRule({ step }, context);
      return executor.perform(step, context);
    },
    async runTemplate(run, context) {
      await failByRule({ step: run.step }, context);
      return executor.runTemplate(run, context);
    },
    async apply(workload, context) {
      await failByRule({ step: 'update', container: workload.name }, context);
      return executor.apply(workload, context);
    },
    async verify(workload, context) {
      await failByRule({ step: 'verify', container: workload.name }, context);
      return executor.verify(workload, context);
    },
    async rollback(workload, context) {
      await failByRule({ step: 'revert', container: workload.name }, context);
      return executor.rollback(workload, context);
    },
    async check(workloads, which, context, repaired) {
      await failByRule({ step: 'final-check' }, context);
      return executor.check(workloads, which, context, repaired);
    },
  };
}

function matchesPart({ container, step }: Match, part: Part): boolean {
  if (container === undefined && step === undefined) return false;
  if (container !== undefined && container !== part.container?.toUpperCase()) return false;
  return part.step === (step ?? 'update');
}
