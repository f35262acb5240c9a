// Measures what the removal of expired event ids, tokens and messages of jobs does to writes.
import { startServer } from '../server.js';
import { withClient } from './databases.js';
import { countExpired, fillEventIds, fillJobs, fillTokens, settle } from './fill.js';
import { measureRemoval } from './removal.js';

const sizes = { eventIds: 1_000_000, tokens: 100_000, jobs: 1_000 };
const messagesPerJob = 300;
const jobHistory = 10;

export async function measureSweeps({ databases, scale, entry, report }) {
  const size = (name) => Math.round(sizes[name] * scale);
  const storeUrl = await databases.create();
  const options = { storeUrl, env: { JOB_HISTORY: String(jobHistory) }, entry };
  await (await startServer(options)).stop();
  report('filling the database');
  const at = Date.now();
  await withClient(storeUrl, async (client) => {
    await fillEventIds(client, size('eventIds'), at - 25 * 3_600_000);
    await fillTokens(client, size('tokens'), at - 1_000);
    await fillJobs(client, size('jobs') + jobHistory, messagesPerJob, at - 86_400_000);
    await settle(client);
  });
  const rows = await measureRemoval({
    options,
    what: 'sweeps',
    writersByKind: { publish: 6, settings: 2 },
    count: (client) => countExpired(client, jobHistory),
    maxMs: 60_000,
    report,
  });
  await databases.drop(storeUrl);
  return rows;
}
