// Configures the test suites: which files run on which store, and the other selections: `--mode quick`, `long`, `cost` and `ci`.
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Tests of processes that die, of connections that break, and of the files for a deployment. */
const crash = ['test/crash/**/*.test.ts', 'test/deployment/**/*.test.ts'];

/** Tests that repeat, more often, what others cover. Only `--mode long` runs them. */
const long = [
  'test/crash/{deliveries,upgrade}.test.ts',
  'test/hard/stalled-readers.test.ts',
  'test/testing/rounds.test.ts',
];

/**
 * Tests of documents (generated pages, pictures, examples, and pages whose commands they run), of the package and of accessibility. Only
 * `--mode ci` runs them, which `.ci/run` does: a change of the code seldom breaks them.
 */
const inCi = [
  'test/examples/**/*.test.ts',
  'test/docs/*.generated.test.ts',
  'test/docs/{shell,readme-browser}.test.ts',
  'test/rest/generated-client.test.ts',
  'test/package.test.ts',
  'test/browser/accessibility.test.ts',
  'test/deployment/{backup,kubernetes,monitoring,postgresql,steps}.test.ts',
];

/** Writes files that tests read, only where RECORD_JOBS asks for it. */
const recorder = process.env.RECORD_JOBS === undefined ? ['test/upgrades/record-jobs.test.ts'] : [];

/** Tests that need the build, PostgreSQL, a browser or other tools, or that take long. `--mode quick` leaves them out. */
const slow = [
  'test/{browser,docs,hard,interop,kubernetes,store}/**/*.test.ts',
  'test/{kit/postgres,main,regular-expressions,start}.test.ts',
  'test/{testing/state,upgrades/executor-contract,upgrades/model}.test.ts',
];

/**
 * Tests of whole servers that run on both stores: those of data that grows, and of what several processes share. The contract suites in
 * test/store prove that the stores are equal; `--mode long` runs all other tests of whole servers on PostgreSQL too.
 */
const stores = ['test/**/*.stores.test.ts'];
const wholeServers = ['test/{audit,auth,catalog,golden,http,rest,upgrades,uploads,webhooks}/**/*.test.ts'];

/** The files that take longest. They start first: one that started last would run alone in the end. */
const longest =
  /test\/(browser\/|docs\/shell|main\.|hard\/(fuzz|body-memory)|kubernetes\/(final-check|executor)|store\/|crash\/(lost-|step-|three-|database|kubernetes|upgrade))/;

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification) => (longest.test(moduleId) ? 0 : 1);
    return (await super.sort(files)).sort((one, other) => rank(one) - rank(other));
  }
}

/** Tests of work with a limit of processor time, which only `--mode cost` measures. */
const cost = [
  'test/hard/{bodies,found,fuzz,large-catalog,manifests}.test.ts',
  'test/kubernetes/{matching,registry-auth}.test.ts',
  'test/store/token-rules.test.ts',
];

/** A real cluster is slower than the one of the tests. */
const timeoutFactor = process.env.STEWARD_TEST_KUBECONFIG === undefined ? 1 : 4;

const globalSetup = ['test/kit/postgres.setup.ts', 'test/kit/bundle.setup.ts'];
const all = ['test/**/*.test.ts'];

const projects = {
  memory: {
    name: 'memory',
    include: all,
    exclude: [...crash, ...long, ...inCi, ...recorder],
    globalSetup,
  },
  // After the others, with more workers: these tests wait longer, for leases and for processes.
  postgres: {
    name: 'postgres',
    include: [...stores, ...crash],
    exclude: [...long, ...inCi],
    env: { TEST_STORE: 'postgres' },
    globalSetup,
    maxWorkers: 4,
    testTimeout: 300_000,
    sequence: { groupOrder: 1 },
  },
};

const modes = {
  test: [projects.memory, projects.postgres],
  ci: [{ name: 'ci', include: inCi, globalSetup, testTimeout: 300_000 }],
  quick: [{ name: 'quick', include: all, exclude: [...crash, ...slow, ...long, ...inCi, ...recorder] }],
  // One worker, so that the tests do not slow each other down.
  cost: [{ name: 'cost', include: cost, env: { MEASURE_COST: 'true' }, maxWorkers: 1, globalSetup }],
  long: [
    {
      name: 'long',
      include: ['test/hard/fuzz.test.ts', 'test/upgrades/model.test.ts', ...long],
      env: { FUZZ_REQUESTS: '100000', FUZZ_RUNS: '2000' },
      globalSetup,
    },
    {
      name: 'postgres',
      include: wholeServers,
      exclude: [...stores, ...recorder],
      env: { TEST_STORE: 'postgres' },
      globalSetup,
    },
  ],
};

const isMode = (mode: string): mode is keyof typeof modes => Object.hasOwn(modes, mode);

export default defineConfig(({ mode }) => ({
  test: {
    setupFiles: ['test/kit/warnings.setup.ts', 'test/kit/cleanup.setup.ts', 'test/kit/answers.setup.ts'],
    pool: 'threads',
    // The files of a worker share their modules: importing the server once per file would take a third of the time.
    isolate: false,
    // Three workers on two cores: while a test waits for a process or a timer, others run.
    maxWorkers: 3,
    sequence: { sequencer: LongestFirst },
    // On a busy machine everything may take many times as long. A test that passes does not wait for these.
    testTimeout: 60_000 * timeoutFactor,
    hookTimeout: 60_000,
    expect: { poll: { timeout: 30_000 * timeoutFactor } },
    projects: modes[isMode(mode) ? mode : 'test'].map((test) => ({
      extends: true as const,
      test,
    })),
  },
}));
