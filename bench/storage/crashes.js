// Measures how many deliveries are sent twice after a crash of the database, as a share of those of a second.
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { createPostgresDirectory, createPostgresServer } from '../../test/kit/postgres-server.js';
import { createWebhooks, startServers } from '../server.js';

const receiverCount = 8;
const publishers = 16;
const maxPending = 800;
const crashes = 5;
const maxShare = 0.02;
const data = JSON.stringify({ serviceName: 'Parcels', note: 'n'.repeat(128) });

/** Receivers in this process, which remember what they got. */
async function startRemembering() {
  const seen = new Set();
  let received = 0;
  const servers = Array.from({ length: receiverCount }, (_, n) =>
    createServer((request, response) => {
      received += 1;
      seen.add(`${n} ${request.headers['webhook-id']}`);
      request.resume();
      request.on('end', () => response.end('ok'));
    }),
  );
  for (const server of servers) await once(server.listen(0, '127.0.0.1'), 'listening');
  return {
    urls: servers.map((server) => `http://127.0.0.1:${server.address().port}/hook`),
    received: () => received,
    repeated: () => received - seen.size,
    stop() {
      for (const server of servers) server.close();
      for (const server of servers) server.closeAllConnections();
    },
  };
}

export async function measureCrashes({ entry, report }) {
  const directory = await createPostgresDirectory();
  const database = await createPostgresServer(directory);
  const receivers = await startRemembering();
  const storeUrls = [database.url, database.url];
  const servers = await startServers(2, { storeUrls, entry });
  await createWebhooks(servers[0], receivers.urls);
  let isOver = false;
  let published = 0;
  async function publish(n) {
    while (!isOver) {
      if (published * receiverCount - receivers.received() >= maxPending) await pause(2);
      else {
        const event = { changeType: 'ServiceUpdated', payload: data, eventId: randomUUID() };
        const answer = await servers[n % 2].ask('POST', '/admin/services/webhooks/publish', event);
        if (answer.status === 200) published += 1;
        else await pause(50);
      }
    }
  }
  const publishing = Promise.all(Array.from({ length: publishers }, (_, n) => publish(n)));
  let perSecond = 0;
  for (let n = 0; n < crashes; n += 1) {
    await pause(3_000);
    const before = receivers.received();
    await pause(1_000);
    perSecond += (receivers.received() - before) / crashes;
    await database.kill();
    await database.start();
    report(`after ${n + 1} crashes: ${receivers.repeated()} repeated of ${receivers.received()}`);
  }
  await pause(3_000);
  isOver = true;
  await publishing;
  // A result that was lost is repeated when the claims of the process are released.
  await pause(2_000);
  const share = receivers.repeated() / crashes / perSecond;
  await Promise.all(servers.map((server) => server.kill()));
  receivers.stop();
  await database.stop();
  await rm(directory, { recursive: true, force: true });
  return [
    {
      figure: `deliveries sent twice after a crash of the database, of ${perSecond.toFixed(0)} in a second; ${crashes} crashes`,
      required: `at most ${maxShare * 100} %`,
      measured: `${(share * 100).toFixed(1)} %`,
      isMet: share <= maxShare,
    },
  ];
}
