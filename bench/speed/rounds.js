// Measures the processor time of requests for bench/speed.js: the server under test and its limit in turns.
import { Buffer } from 'node:buffer';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { median, percentile } from '../kit.js';
import { start } from './processes.js';

/** By then V8 has compiled the hot code. After 1,500 requests, its compiler takes two fifths of the processor time. */
const usualWarmUp = 5000;
const usualSlice = 800;
/** Of each round: in turns, because other work on the machine changes. */
const slices = 3;

const textOf = ({ bytes }) => bytes.toString();

function refuse(what, answer) {
  throw new Error(`${what} answers ${answer.status}: ${textOf(answer).slice(0, 500)}`);
}

async function startLimit(folder, { method, path }, { body, status = 200 }, answers) {
  const [{ contentType }] = answers;
  await writeFile(join(folder, 'limit.json'), JSON.stringify({ method, path, body, status, contentType }));
  for (const [n, { bytes }] of answers.entries())
    await writeFile(join(folder, `${String(n).padStart(5, '0')}.answer`), bytes);
  return start('limit', folder);
}

function toBytes({ method, path, headers, body = '' }) {
  const length = body === '' ? {} : { 'content-length': Buffer.byteLength(body) };
  const lines = Object.entries({ host: 'localhost', ...headers, ...length }).map(
    ([name, value]) => `${name}: ${value}`,
  );
  const head = [`${method} ${path} HTTP/1.1`, ...lines, '', ''].join('\r\n');
  return Buffer.concat([Buffer.from(head), Buffer.from(body)]);
}

async function startSides(work, folder) {
  const env = { ...work.env };
  if (work.catalog) {
    env.CATALOG_FILE = join(folder, 'catalog.json');
    await writeFile(env.CATALOG_FILE, JSON.stringify(work.catalog));
  }
  const server = await start('server', env);
  const asked = await work.requestsTo(server);
  const { status = 200, connections } = work;
  const answers = [];
  for (const one of asked) answers.push(await server.ask(one));
  const [first] = answers;
  const { length } = first.bytes;
  for (const answer of answers)
    if (answer.status !== status || answer.bytes.length !== length) refuse('the server', answer);

  const sides = { server, limit: await startLimit(folder, asked[0], work, answers) };
  const bare = await sides.limit.ask(asked[0]);
  if (!isDeepStrictEqual(bare, first)) refuse('the limit', bare);
  const task = { requests: asked.map(toBytes), connections, status, length };
  return Object.entries(sides).map(([name, side]) => ({ name, side, task: { ...task, port: side.port } }));
}

async function measure({ side, task }, load, count) {
  const before = side.busyMs();
  const ran = await load.run({ ...task, count });
  return { costMs: (side.busyMs() - before) / count, loadBusy: ran.busyMs / ran.ms };
}

async function measureRound(work, load) {
  const folder = await mkdtemp(join(tmpdir(), 'steward-speed-'));
  const sides = await startSides(work, folder);
  const { warmUp = usualWarmUp, slice = usualSlice } = work;
  for (const each of sides) await measure(each, load, warmUp);
  const measured = [];
  for (let n = 0; n < slices; n += 1) {
    const figures = {};
    for (const each of n % 2 === 0 ? sides : sides.toReversed())
      figures[each.name] = await measure(each, load, slice);
    measured.push(figures);
  }
  for (const { side } of sides) await side.stop();
  await rm(folder, { recursive: true });
  return measured;
}

/**
 * The cost of a request is its processor time. Each ratio is of one slice. Each round starts new processes: the memory
 * layout of a process makes it a few percent faster or slower for its whole life.
 */
export async function compareCosts(work, load, rounds) {
  const measured = [];
  for (let round = 0; round < rounds; round += 1) measured.push(...(await measureRound(work, load)));
  const ratios = measured.map(({ server, limit }) => limit.costMs / server.costMs);
  return {
    server: median(measured.map(({ server }) => server.costMs)),
    limit: median(measured.map(({ limit }) => limit.costMs)),
    ratio: median(ratios),
    quartiles: [percentile(ratios, 0.25), percentile(ratios, 0.75)],
    loadBusy: Math.max(...measured.flatMap(({ server, limit }) => [server.loadBusy, limit.loadBusy])),
  };
}
