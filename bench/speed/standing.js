// Measures the time to start a server and its memory at rest, for bench/speed.js.
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

/** Without configuration, as the README starts it: hashing a given password takes longer. */
async function startOnce(side) {
  const server = await start(side, side === 'server' ? { ADMIN_PASSWORD: '' } : undefined);
  for (let n = 0; n < requestsBefore; n += 1) await server.ask({ path: '/health' });
  await wait(restMs);
  const figures = { ms: server.ms, megabytes: server.residentMb() };
  await server.stop();
  return figures;
}

export async function compareStarts(times) {
  const measured = [];
  // The first round is a warm-up, because the file cache is empty.
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

export async function measureLargeCatalog() {
  const folder = await mkdtemp(join(tmpdir(), 'steward-speed-'));
  const CATALOG_FILE = join(folder, 'catalog.json');
  await writeFile(CATALOG_FILE, JSON.stringify(regular(1000, 100)));
  const server = await start('server', {
    CATALOG_FILE,
    MAX_SERVICES: '100000',
  });
  const { status } = await server.ask(askFolder(folderNamed(500)));
  if (status !== 200) throw new Error(`the server answers ${status}`);
  await wait(restMs);
  const megabytes = server.residentMb();
  await server.stop();
  await rm(folder, { recursive: true });
  return megabytes;
}
