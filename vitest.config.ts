import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    pool: 'threads',
    testTimeout: 20_000,
    hookTimeout: 30_000,
    // Processes may be slow to start on a busy machine.
    expect: { poll: { timeout: 10_000 } },
  },
});
