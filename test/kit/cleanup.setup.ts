// Cleans up after every test and test file, and checks logs and audit trails for secrets. The kit cannot register
// these hooks itself: all files of a worker share its modules.
import { afterAll, afterEach, beforeEach } from 'vitest';
import { beginTest, end } from './cleanup.ts';
import { expectNoSecretRecorded } from './leaks.ts';
import { removeDatabases } from './postgres.ts';
import { killProcesses } from './process.ts';

beforeEach(beginTest);
afterEach(async () => {
  await end('test');
  killProcesses();
});
afterAll(async () => {
  await end('file');
  await removeDatabases();
  expectNoSecretRecorded();
});
