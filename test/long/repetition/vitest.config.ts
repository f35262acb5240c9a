// Runs the cases beside it with the rule of repetition that the tests of processes have.
import { defineConfig } from 'vitest/config';
import { repetition } from '../../../vitest.config.ts';

export default defineConfig({
  test: { include: ['test/long/repetition/cases.ts'], pool: 'threads', ...repetition },
});
