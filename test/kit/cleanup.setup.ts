// Cleans up after every test and test file, and checks logs and audit trails for secrets. The kit cannot register
// these hooks itself: all files of a worker share its modules.
import { afterAll, afterEach } from 'vitest';
import { expectNoSecretRecorded } from './leaks.ts';
import { removeDatabases } from './postgres.ts';
import { killProcesses } from './process.ts';

afterEach(killProcesses);
afterAll(async () => {
  await removeDatabases();
  expectNoSecretRecorded();
});
