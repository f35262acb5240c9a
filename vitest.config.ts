import { readFileSync, readdirSync } from 'node:fs';
import { defineConfig } from 'vitest/config';

// What goes through a whole server runs once for each kind of store; but not what a browser makes of it, nor hostile input, which is
// met before any store is.
const onOneStore = /^test\/(browser\/|hard\/(found|fuzz|limits|slow)\.)/;
const endToEnd = readdirSync('test', { recursive: true, encoding: 'utf8' })
  .map((name) => `test/${name.replaceAll('\\', '/')}`)
  .filter((path) => path.endsWith('.test.ts') && !onOneStore.test(path))
  .filter((path) => /kit\/(server|hooks)\.ts/.test(readFileSync(path, 'utf8')));

// What starts processes and kills them would be in the way of all else, and all else in its way.
const crashes = ['test/crash/**/*.test.ts', 'test/deployment/**/*.test.ts'];

// A real cluster takes its time, all the more when everything else asks it too.
const patience = process.env.STEWARD_TEST_KUBECONFIG === undefined ? 1 : 4;

export default defineConfig({
  test: {
    globalSetup: ['test/kit/postgres.setup.ts'],
    pool: 'threads',
    maxWorkers: 2,
    testTimeout: 20_000 * patience,
    hookTimeout: 30_000,
    // Processes may be slow to start on a busy machine.
    expect: { poll: { timeout: 10_000 * patience } },
    projects: [
      { extends: true, test: { name: 'memory', include: ['test/**/*.test.ts'], exclude: crashes } },
      { extends: true, test: { name: 'postgres', include: endToEnd, env: { TEST_STORE: 'postgres' } } },
      {
        extends: true,
        test: { name: 'crash', include: crashes, sequence: { groupOrder: 1 } },
      },
    ],
  },
});
