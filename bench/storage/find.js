// Measures pages of 1,000,000 deliveries: a filtered page, of all webhooks and of one, to the page without a filter.
import { URLSearchParams } from 'node:url';
import { compare } from '../kit.js';
import { createWebhooks, startServer } from '../server.js';
import { withClient } from './databases.js';
import { fillVariedDeliveries, settle } from './fill.js';

const count = 1_000_000;
const webhooks = 50;
const reads = 15;
const maxOfUnfiltered = 3;
const dayMs = 86_400_000;

export async function measureFind({ databases, scale, entry, report }) {
  const databaseUrl = await databases.create();
  const server = await startServer({ storeUrl: databaseUrl, entry });
  await server.signIn();
  const urls = Array.from({ length: webhooks }, (_, n) => `http://127.0.0.1:9/${n}`);
  const webhookIds = await createWebhooks(server, urls, { changeTypes: 'NeverPublished' });
  const to = Date.now();
  const from = to - 30 * dayMs;
  const filled = Math.max(webhooks, Math.round(count * scale));
  report(`filling the database with ${filled} deliveries`);
  await withClient(databaseUrl, async (client) => {
    await fillVariedDeliveries(client, webhookIds, filled, { from, to });
    await settle(client);
  });

  const filters = {
    'common state': { state: 'delivered' },
    'all states that can be recovered': { state: 'failed,discarded,missed' },
    'rare state': { state: 'pending' },
    'common type': { changeType: 'Type0' },
    'rare type': { changeType: 'Rare' },
    'type that never occurs': { changeType: 'Never' },
    event: { eventId: 'event-777' },
    'common status': { status: '200' },
    'rare status': { status: '418' },
    'no status': { status: 'none' },
    'an hour': { from: String(from + 9 * dayMs), to: String(from + 9 * dayMs + 3_600_000) },
    'rare state and type': { state: 'pending', changeType: 'Rare' },
    'status and type that occur, but not together': { status: '418', changeType: 'Type0' },
    'state, type and a day': { state: 'missed', changeType: 'Type3', from: String(to - dayMs) },
  };
  const rows = [];
  for (const [scope, path] of [
    ['all webhooks', 'deliveries'],
    ['one webhook', `${webhookIds[0]}/deliveries`],
  ]) {
    const read = async (filter) => {
      const query = new URLSearchParams({ f: 'json', ...filter }).toString();
      const started = performance.now();
      const { total } = await server.require('GET', `/admin/services/webhooks/${path}?${query}`);
      return { ms: performance.now() - started, total };
    };
    await read({});
    for (const [name, filter] of Object.entries(filters)) {
      const rounds = [];
      const { total } = await read(filter);
      for (let n = 0; n < reads; n += 1)
        rounds.push({ baseline: (await read({})).ms, measured: (await read(filter)).ms });
      const { measured, baseline, ratio } = compare(rounds);
      const times = `${measured.toFixed(1)} ms to ${baseline.toFixed(1)} ms`;
      report(`${scope}, ${name}: ${times}, ${total} match`);
      rows.push({
        figure: `deliveries of ${scope}, ${name} (${total} match): ${times}`,
        required: `at most ${maxOfUnfiltered}`,
        measured: ratio.toFixed(2),
        isMet: ratio <= maxOfUnfiltered,
      });
    }
  }
  await server.stop();
  await databases.drop(databaseUrl);
  return rows;
}
