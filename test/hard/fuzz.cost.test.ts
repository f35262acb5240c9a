// Sends thousands of random hostile requests in sessions, each with its own server. FUZZ_REQUESTS sets the number
// of requests (default 500; 100,000 takes some minutes), FUZZ_SEED the first seed. A failure is reported with its
// seed and the shortest session found.
import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { currentMode } from '../../src/mode/mode.ts';
import { isJobRunning } from '../../src/upgrades/jobs/job-table.ts';
import { expectCost } from '../kit/cost.ts';
import type { FuzzRequest } from './fuzz-http.ts';
import { isSlowOnPurpose, pagesOf, requestsTo } from './fuzz-requests.ts';
import { type Target, idsIn, isComplete, send, startTarget, stopTarget } from './fuzz-session.ts';
import { judge } from './fuzz-verdict.ts';

const requestCount = Number(process.env.FUZZ_REQUESTS ?? 500);
// The default run sends the same requests each time; a run with FUZZ_REQUESTS sends different ones.
const defaultSeed =
  process.env.FUZZ_REQUESTS === undefined ? 528_027_505 : Math.floor(Math.random() * 2 ** 31);
const firstSeed = Number(process.env.FUZZ_SEED ?? defaultSeed);
const shrinkWithinMs = 30_000;
const most = { cpuMs: 50, forBytes: 16 * 1024 };

const uncaught: unknown[] = [];
const recordUncaught = (error: unknown) => uncaught.push(error);
beforeAll(() => {
  process.on('uncaughtException', recordUncaught);
  process.on('unhandledRejection', recordUncaught);
});
afterAll(() => {
  process.off('uncaughtException', recordUncaught);
  process.off('unhandledRejection', recordUncaught);
});

/** The server logs internal errors at level 50 or above. */
function expectNoFailure({ logLines }: Target): void {
  expect(logLines.splice(0).filter((line) => !/^\{"level":[234]0/.test(line))).toEqual([]);
  expect(uncaught.splice(0)).toEqual([]);
}

/** Throws if the response is invalid; returns whether the request succeeded. */
async function expectGoodAnswer(target: Target, request: FuzzRequest): Promise<boolean> {
  const { store } = target;
  const isReadOnly = () => currentMode(store, isJobRunning(store)).isReadOnly;
  const wasReadOnly = isReadOnly();
  const isCheap = request.body.length <= most.forBytes && !isSlowOnPurpose(request.url);
  const answer = await expectCost(isCheap ? most.cpuMs : Infinity, () => send(target, request));
  if (answer) judge(answer, request.method === 'HEAD', wasReadOnly || isReadOnly());
  else expect(isComplete(request), 'The server sent no response').toBe(false);
  expect(answer?.body ?? '').not.toContain('did not arrive in time');
  expectNoFailure(target);
  return answer !== undefined && answer.status < 300;
}

const environments = fc.constantFrom<Record<string, string>[]>(
  {},
  {},
  {},
  {},
  { REQUIRE_TOKENS: 'true' },
  { TRUSTED_PROXIES: '127.0.0.0/8' },
  { PUBLIC_URL: 'https://x.example/deep/down', VENDOR_PREFIX: 'acme' },
);

it(
  `the server answers ${requestCount} hostile requests correctly, starting with seed ${firstSeed}`,
  async () => {
    const pattern = await startTarget({});
    const request = requestsTo(pattern.app.trees, await idsIn(pattern));
    const pages = pagesOf(pattern.app.trees);
    await stopTarget(pattern);
    const counts = { sent: 0, accepted: 0 };
    const session = fc.asyncProperty(
      environments,
      fc.array(request, { minLength: 1, maxLength: 120, size: 'max' }),
      async (env, requests) => {
        const target = await startTarget(env);
        try {
          for (const [index, one] of [...requests, ...pages].entries()) {
            const isAccepted = await expectGoodAnswer(target, one).catch((error: unknown) => {
              throw new WrongAnswer(index, one, error as Error);
            });
            counts.sent += 1;
            if (isAccepted) counts.accepted += 1;
            if (index % 25 === 24) await target.runtime.advance(10_000);
          }
          // Lets background tasks finish.
          await target.runtime.advance(120_000);
          expectNoFailure(target);
        } finally {
          await stopTarget(target);
        }
      },
    );
    for (let seed = firstSeed; counts.sent < requestCount; seed += 1) {
      const options = { numRuns: 1, unbiased: true, interruptAfterTimeLimit: shrinkWithinMs };
      const found = await fc.check(session, { seed, ...options });
      if (found.failed) throw new Error(formatFailure(seed, found.counterexample, found.errorInstance));
    }
    // If the server refused nearly all requests, the test would prove little.
    expect(counts.accepted / counts.sent).toBeGreaterThan(0.2);
  },
  120_000 + requestCount * 20,
);

/** Thrown by a session: the request with an invalid response, and the reason. */
class WrongAnswer extends Error {
  readonly index: number;
  readonly request: FuzzRequest;

  constructor(index: number, request: FuzzRequest, cause: Error) {
    super(cause.message, { cause });
    this.index = index;
    this.request = request;
  }
}

type Session = [Record<string, string>, FuzzRequest[]];

/** The shortest failing session found, up to the request that failed. */
function formatFailure(seed: number, counterexample: Session | null, error: unknown): string {
  const [env, requests] = counterexample ?? [{}, []];
  const sent = error instanceof WrongAnswer ? [...requests.slice(0, error.index), error.request] : requests;
  const fold = (text: string) =>
    text.replace(
      /(.{1,12}?)\1{9,}/gs,
      (all: string, unit: string) => `⟨${unit} × ${all.length / unit.length}⟩`,
    );
  const shorten = (_key: string, value: unknown) => (typeof value === 'string' ? fold(value) : value);
  return [
    `FUZZ_SEED=${seed} ${JSON.stringify(env)}`,
    ...sent.map((request) => JSON.stringify(request, shorten)),
    error instanceof WrongAnswer
      ? error.message
      : ((error as Error | null)?.stack ?? 'A session did not end.'),
  ].join('\n');
}
