// Measures the start of a process and its memory on a database with a large history, compared with an empty one.
import { median } from '../kit.js';
import { createWebhooks, startServer } from '../server.js';
import { withClient } from './databases.js';
import { fillDeliveries, fillEventIds, fillJobs, fillTokens, settle } from './fill.js';

const sizes = {
  eventIds: 3_000_000,
  jobs: 5_000,
  tokens: 100_000,
  webhooks: 1_000,
  deliveries: 200_000,
};
const messagesPerJob = 300;
const maxMs = 3_000;
const maxMb = 200;

export async function measureStart({ databases, rounds, scale, entry, report }) {
  const size = (name) => Math.max(1, Math.round(sizes[name] * scale));
  const env = { JOB_HISTORY: String(sizes.jobs), WEBHOOK_HISTORY: '10000' };
  const [empty, full] = [await databases.create(), await databases.create()];

  async function createTables(storeUrl, prepare) {
    const server = await startServer({ storeUrl, env, entry });
    const prepared = await prepare(server);
    await server.stop();
    return prepared;
  }
  async function prepareWebhooks(server) {
    await server.signIn();
    const urls = Array.from({ length: size('webhooks') }, (_, n) => `http://127.0.0.1:9/${n}`);
    return createWebhooks(server, urls, { changeTypes: 'NeverPublished' });
  }
  await createTables(empty, () => undefined);
  const webhookIds = await createTables(full, prepareWebhooks);
  report('filling the database');
  const at = Date.now();
  await withClient(full, async (client) => {
    await fillEventIds(client, size('eventIds'), at);
    await fillTokens(client, size('tokens'), at + 86_400_000);
    await fillJobs(client, size('jobs'), messagesPerJob, at - 86_400_000);
    await fillDeliveries(client, webhookIds, size('deliveries'), at);
    await settle(client);
  });

  async function startOn(storeUrl) {
    const server = await startServer({ storeUrl, env, entry });
    const figures = { ms: server.readyMs, ...server.memory() };
    await server.stop();
    return figures;
  }
  const measured = { empty: [], full: [] };
  try {
    for (let round = 0; round < rounds; round += 1) {
      measured.empty.push(await startOn(empty));
      measured.full.push(await startOn(full));
      report(`round ${round + 1}: ready after ${measured.full.at(-1).ms.toFixed(0)} ms`);
    }
  } catch (error) {
    const row = { figure: `start on a full database: ${error.message}`, required: 'a start' };
    return [{ ...row, measured: 'none', isMet: false }];
  } finally {
    await databases.drop(empty);
    await databases.drop(full);
  }

  const figure = (name) => {
    const [one, other] = [measured.full, measured.empty].map((list) =>
      median(list.map((entry) => entry[name])),
    );
    return { full: one, empty: other, ratio: one / other };
  };
  const [ms, resident, peak] = ['ms', 'resident', 'peak'].map(figure);
  const beside = ({ empty: other, ratio }, unit) =>
    `(empty: ${other.toFixed(0)} ${unit}, ratio ${ratio.toFixed(2)})`;
  return [
    {
      figure: `start to /ready on a full database ${beside(ms, 'ms')}`,
      required: `at most ${maxMs} ms`,
      measured: `${ms.full.toFixed(0)} ms`,
      isMet: ms.full <= maxMs,
    },
    {
      figure: `resident memory when ready ${beside(resident, 'MB')}`,
      required: `at most ${maxMb} MB`,
      measured: `${resident.full.toFixed(0)} MB`,
      isMet: resident.full <= maxMb,
    },
    { figure: `its peak until then ${beside(peak, 'MB')}`, measured: `${peak.full.toFixed(0)} MB` },
  ];
}
