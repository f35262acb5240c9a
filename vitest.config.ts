import { readFileSync, readdirSync } from 'node:fs';
import { defineConfig } from 'vitest/config';

// What goes through a whole server runs once for each kind of store.
const endToEnd = readdirSync('test', { recursive: true, encoding: 'utf8' })
  .map((name) => `test/${name.replaceAll('\\', '/')}`)
  .filter((path) => path.endsWith('.test.ts') && /kit\/(server|hooks)\.ts/.test(readFileSync(path, 'utf8')));

export default defineConfig({
  test: {
    globalSetup: ['test/kit/postgres.setup.ts'],
    pool: 'threads',
    // More than there may be cores: what kills processes or drives a browser waits most of the time.
    maxWorkers: 4,
    testTimeout: 20_000,
    hookTimeout: 30_000,
    // Processes may be slow to start on a busy machine.
    expect: { poll: { timeout: 10_000 } },
    projects: [
      { extends: true, test: { name: 'memory', include: ['test/**/*.test.ts'] } },
      { extends: true, test: { name: 'postgres', include: endToEnd, env: { TEST_STORE: 'postgres' } } },
    ],
  },
});
