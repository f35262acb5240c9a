// The server process of the tests: the real one, which also checks its own answers and deliveries. TEST_LEASE_MS
// shortens its lease.
import './check-process.js';
import { runProcess } from '../../src/app/process.ts';
import { startControlled } from '../../src/testing/routes.ts';

const { TEST_LEASE_MS } = process.env;
await runProcess({
  envFile: '.env',
  startControlled,
  ...(TEST_LEASE_MS !== undefined && { leaseMs: Number(TEST_LEASE_MS) }),
});
