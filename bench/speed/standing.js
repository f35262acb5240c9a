// What a server costs before anybody uses it, for bench/speed.js: how long it takes to start, and how much memory it then has.
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { median } from '../kit.js';
import { folderNamed, regular } from './catalogs.js';
import { start } from './processes.js';
import { askFolder } from './works.js';

const restMs = 500;
const requestsBefore = 20;

async function startOnce(side) {
  const server = await start(side);
  for (let n = 0; n < requestsBefore; n += 1) await server.ask({ path: '/health' });
  await wait(restMs);
  const figures = { ms: server.ms, megabytes: server.residentMb() };
  await server.stop();
  return figures;
}

/** The server beside a bare Fastify app, started in turn: medians of the time to the first answer, and of what is resident at rest. */
export async function compareStarts(times) {
  const measured = [];
  // The first ones find nothing in the file cache.
  for (let n = 0; n <= times; n += 1) {
    const figures = { server: await startOnce('server'), limit: await startOnce('limit') };
    if (n > 0) measured.push(figures);
  }
  const compare = (figure) => ({
    server: median(measured.map(({ server }) => server[figure])),
    limit: median(measured.map(({ limit }) => limit[figure])),
    ratio: median(measured.map(({ server, limit }) => server[figure] / limit[figure])),
  });
  return { start: compare('ms'), idle: compare('megabytes') };
}

/** What is resident with 100,000 services in 1,000 folders, once they are loaded and one folder was asked for. */
export async function measureLargeCatalog() {
  const folder = await mkdtemp(join(tmpdir(), 'steward-speed-'));
  const CATALOG_FILE = join(folder, 'catalog.json');
  await writeFile(CATALOG_FILE, JSON.stringify(regular(1000, 100)));
  const server = await start('server', [], { CATALOG_FILE });
  const { status } = await server.ask(askFolder(folderNamed(500)));
  if (status !== 200) throw new Error(`the server answers ${status}`);
  await wait(restMs);
  const megabytes = server.residentMb();
  await server.stop();
  await rm(folder, { recursive: true });
  return megabytes;
}
