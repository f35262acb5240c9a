// Hostile requests by the thousand, in sessions with servers of their own. FUZZ_REQUESTS sets their number (5,000 unless told;
// 100,000 takes some minutes), FUZZ_SEED the first seed. What goes wrong is told with its seed and made as short as can be.
import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { currentMode } from '../../src/mode/mode.ts';
import { isJobRunning } from '../../src/upgrades/job-table.ts';
import type { FuzzRequest } from './fuzz-http.ts';
import { isSlowOnPurpose, pagesOf, requestsTo } from './fuzz-requests.ts';
import { type Target, idsIn, isHonest, send, startTarget, stopTarget } from './fuzz-session.ts';
import { cpuMs, judge } from './fuzz-verdict.ts';

const wanted = Number(process.env.FUZZ_REQUESTS ?? 5000);
// The suite's own requests are the same each time; whoever asks for more gets others.
const usualSeed = process.env.FUZZ_REQUESTS === undefined ? 528_027_505 : Math.floor(Math.random() * 2 ** 31);
const firstSeed = Number(process.env.FUZZ_SEED ?? usualSeed);
const sessionsPerSeed = 10;
const longestSearchMs = 30_000;
const most = { cpuMs: 50, forBytes: 16 * 1024 };

const uncaught: unknown[] = [];
const note = (error: unknown) => uncaught.push(error);
beforeAll(() => {
  process.on('uncaughtException', note);
  process.on('unhandledRejection', note);
});
afterAll(() => {
  process.off('uncaughtException', note);
  process.off('unhandledRejection', note);
});

/** What is our own fault is logged as an error. */
function expectNoFailure({ logLines }: Target): void {
  expect(logLines.splice(0).filter((line) => !/^\{"level":[234]0/.test(line))).toEqual([]);
  expect(uncaught.splice(0)).toEqual([]);
}

/** Throws what is wrong with the answer to a request; tells whether it was taken. */
async function expectGoodAnswer(target: Target, request: FuzzRequest): Promise<boolean> {
  const { store } = target;
  const isReadOnly = () => currentMode(store, isJobRunning(store)).isReadOnly;
  const wasReadOnly = isReadOnly();
  const before = cpuMs();
  const answer = await send(target, request);
  let spent = cpuMs() - before;
  if (answer) judge(answer, request.method === 'HEAD', wasReadOnly || isReadOnly());
  else expect(isHonest(request), 'There was no answer').toBe(false);
  expect(answer?.body ?? '').not.toContain('did not arrive in time');
  expectNoFailure(target);
  if (request.body.length <= most.forBytes && !isSlowOnPurpose(request.url)) {
    // Where the machine is busy, or what runs is compiled for the first time, one measurement means nothing.
    for (let again = 0; again < 3 && spent > most.cpuMs; again += 1) {
      const start = cpuMs();
      await send(target, request);
      spent = cpuMs() - start;
    }
    expect(spent, 'milliseconds of CPU').toBeLessThanOrEqual(most.cpuMs);
  }
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
  `meets ${wanted} hostile requests, from seed ${firstSeed} on`,
  async () => {
    const pattern = await startTarget({});
    const request = requestsTo(pattern.app.trees, await idsIn(pattern));
    const pages = pagesOf(pattern.app.trees);
    await stopTarget(pattern);
    const counts = { sent: 0, taken: 0 };
    const session = fc.asyncProperty(
      environments,
      fc.array(request, { minLength: 1, maxLength: 120, size: 'max' }),
      async (env, requests) => {
        const target = await startTarget(env);
        try {
          for (const [index, one] of [...requests, ...pages].entries()) {
            const isTaken = await expectGoodAnswer(target, one).catch((error: unknown) => {
              throw new WrongAnswer(index, one, error as Error);
            });
            counts.sent += 1;
            if (isTaken) counts.taken += 1;
            if (index % 25 === 24) await target.runtime.advance(10_000);
          }
          // What goes on in the background gets to its end, too.
          await target.runtime.advance(120_000);
          expectNoFailure(target);
        } finally {
          await stopTarget(target);
        }
      },
    );
    for (let seed = firstSeed; counts.sent < wanted; seed += 1) {
      const options = { numRuns: sessionsPerSeed, unbiased: true, interruptAfterTimeLimit: longestSearchMs };
      const found = await fc.check(session, { seed, ...options });
      if (found.failed) throw new Error(tell(seed, found.counterexample, found.errorInstance));
    }
    // Requests that are all refused at the door would prove little.
    expect(counts.taken / counts.sent).toBeGreaterThan(0.2);
  },
  120_000 + wanted * 20,
);

/** Thrown by a session: which of its requests was answered wrongly, and how. */
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

/** The shortest session found that goes wrong, up to the request that does. */
function tell(seed: number, counterexample: Session | null, error: unknown): string {
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
