// Configures which tests run where. Four folders decide it: `test/process`, `test/browser` and `test/documents` need processes, a browser
// or other programs, `test/long` repeats and measures. `npm test` runs all other folders; `.ci/run` runs all.
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

const all = ['test/**/*.test.ts'];
const onlyInCi = ['test/{process,browser,documents,long}/**'];

/** Folders whose tests need PostgreSQL or other programs, or take long. `--mode quick` leaves them out. */
const slow = ['test/{hard,interop,kubernetes,store}/**'];

/**
 * Tests of whole servers that run on both stores: those of data that grows, and of what several processes share. The contract suites in
 * test/store prove that the stores are equal; `--mode long` runs all other tests of whole servers on PostgreSQL too.
 */
const stores = ['test/**/*.stores.test.ts'];
const wholeServers = ['test/{audit,auth,catalog,golden,http,rest,upgrades,uploads,webhooks}/**/*.test.ts'];

/** Tests of work with a limit of processor time, which only `--mode cost` measures. */
const cost = ['test/**/*.cost.test.ts'];

/** The files that take longest. They start first: one that started last would run alone in the end. */
const longest =
  /test\/(browser\/|documents\/shell|hard\/fuzz|kubernetes\/(final-check|step-|executor)|store\/|process\/(lost-|step-|three-|database|kubernetes|upgrade))/;

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification) => (longest.test(moduleId) ? 0 : 1);
    return (await super.sort(files)).sort((one, other) => rank(one) - rank(other));
  }
}

/** A real cluster is slower than the one of the tests. */
const timeoutFactor = process.env.STEWARD_TEST_KUBECONFIG === undefined ? 1 : 4;

/**
 * Repeats a test once if the machine stalled for more than a second while it ran: timeouts of processes and
 * connections then end early. Only for tests with processes or PostgreSQL; all others must not depend on the machine.
 */
export const repetition = {
  setupFiles: ['test/kit/stall.setup.ts'],
  retry: { count: 1, condition: /\[the machine stalled for [0-9.]+ s\]$/ },
  reporters: ['default', fileURLToPath(new URL('test/kit/repeated-reporter.ts', import.meta.url))],
};

const setupFiles = ['test/kit/warnings.setup.ts', 'test/kit/cleanup.setup.ts', 'test/kit/answers.setup.ts'];

/** The setup that is registered first ends last, after all errors of a test are known. */
const repeated = { retry: repetition.retry, setupFiles: [...repetition.setupFiles, ...setupFiles] };

const globalSetup = ['test/kit/postgres.setup.ts', 'test/kit/bundle.setup.ts'];
const onPostgres = { env: { TEST_STORE: 'postgres' }, globalSetup, testTimeout: 300_000, ...repeated };
/** After the others: these tests wait longer, for leases and for processes. */
const waiting = { sequence: { groupOrder: 1 } };

if (process.env.GOLDEN === 'write' && !process.argv.some((argument) => argument.includes('golden')))
  throw new Error('GOLDEN=write is for one folder: GOLDEN=write npx vitest run --mode quick test/golden');

const modes = {
  test: [
    { name: 'memory', include: all, exclude: onlyInCi, globalSetup },
    { name: 'postgres', include: stores, exclude: onlyInCi, ...onPostgres, ...waiting },
  ],
  quick: [{ name: 'quick', include: all, exclude: [...onlyInCi, ...slow] }],
  ci: [
    {
      name: 'ci',
      include: ['test/{browser,documents,long}/**/*.test.ts'],
      globalSetup,
      testTimeout: 300_000,
      ...repeated,
    },
    { name: 'process', include: ['test/process/**/*.test.ts'], ...onPostgres, ...waiting },
  ],
  // One worker, so that the tests do not slow each other down.
  cost: [{ name: 'cost', include: cost, env: { MEASURE_COST: 'true' }, maxWorkers: 1, globalSetup }],
  long: [
    {
      name: 'long',
      include: ['test/long/**/*.test.ts', 'test/hard/fuzz.cost.test.ts', 'test/upgrades/model.test.ts'],
      env: { FUZZ_REQUESTS: '100000', FUZZ_RUNS: '2000', ROUNDS: '1000' },
      globalSetup,
    },
    { name: 'postgres', include: wholeServers, exclude: stores, ...onPostgres },
  ],
};

const isMode = (mode: string): mode is keyof typeof modes => Object.hasOwn(modes, mode);

export default defineConfig(({ mode }) => ({
  test: {
    setupFiles,
    pool: 'threads',
    // The files of a worker share their modules: importing the server once per file would take a third of the time.
    isolate: false,
    maxWorkers: 2,
    sequence: { sequencer: LongestFirst },
    // On a busy machine everything may take many times as long. A test that passes does not wait for these.
    testTimeout: 120_000 * timeoutFactor,
    hookTimeout: 300_000,
    reporters: repetition.reporters,
    expect: { poll: { timeout: 100_000 * timeoutFactor } },
    projects: modes[isMode(mode) ? mode : 'test'].map((test) => ({
      extends: true as const,
      test,
    })),
  },
}));
