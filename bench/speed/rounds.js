// Measures requests per second for bench/speed.js: the server under test, its limit and its peer in alternating rounds.
import { Buffer } from 'node:buffer';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { XMLParser } from 'fast-xml-parser';
import { median } from '../kit.js';
import { start } from './processes.js';

/** By then V8 has compiled the hot code. */
const warmUpMs = 3000;

const textOf = ({ bytes }) => bytes.toString();

/** The server and the peer use different prefixes and attributes for the same answer. */
function readAnswer(answer) {
  const isArray = (name) => name === 'ServiceDescription';
  const parser = new XMLParser({
    removeNSPrefix: true,
    ignoreAttributes: true,
    parseTagValue: false,
    isArray,
  });
  const [response] = Object.values(parser.parse(textOf(answer)).Envelope.Body);
  return {
    MessageVersion: response.MessageVersion,
    services: response.ServiceDescriptions?.ServiceDescription,
  };
}

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

async function startPeer(folder, server, answer) {
  await writeFile(join(folder, 'catalog.wsdl'), textOf(await server.ask({ path: '/services?wsdl' })));
  await writeFile(join(folder, 'peer.json'), JSON.stringify(readAnswer(answer)));
  return start('peer', folder);
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
  const lengths = { server: length, limit: length };
  if (work.hasPeer) {
    sides.peer = await startPeer(folder, server, first);
    const answer = await sides.peer.ask(asked[0]);
    if (answer.status !== 200 || !isDeepStrictEqual(readAnswer(answer), readAnswer(first)))
      refuse('the peer', answer);
  }
  const task = { requests: asked.map(toBytes), connections, status };
  return Object.entries(sides).map(([name, side]) => ({
    name,
    side,
    task: { ...task, port: side.port, length: lengths[name] },
  }));
}

async function measure({ side, task }, load, ms) {
  await load.run({ ...task, ms: ms / 2 });
  const before = side.busyMs();
  const ran = await load.run({ ...task, ms });
  return {
    rate: (ran.answered * 1000) / ran.ms,
    cost: (side.busyMs() - before) / ran.answered,
    loadBusy: ran.busyMs / ran.ms,
  };
}

async function measureOnce(work, load, ms) {
  const folder = await mkdtemp(join(tmpdir(), 'steward-speed-'));
  const sides = await startSides(work, folder);
  const figures = {};
  for (const each of sides) await measure(each, load, Math.min(warmUpMs, 3 * ms));
  for (const each of sides) figures[each.name] = await measure(each, load, ms);
  for (const { side } of sides) await side.stop();
  await rm(folder, { recursive: true });
  return figures;
}

/**
 * Each ratio is of one round, because other work on the machine changes between rounds. Each round starts new
 * processes: the memory layout of a process makes it a few percent faster or slower for its whole life.
 */
export async function compareRates(work, load, { rounds, ms }) {
  const measured = [];
  for (let round = 0; round < rounds; round += 1) measured.push(await measureOnce(work, load, ms));
  const over = (figureOf) => median(measured.map(figureOf));
  const names = Object.keys(measured[0]);
  const costs = names.map((name) => [name, over((figures) => figures[name].cost)]);
  return {
    server: over(({ server }) => server.rate),
    limit: over(({ limit }) => limit.rate),
    ratio: over(({ server, limit }) => server.rate / limit.rate),
    ratioToPeer: work.hasPeer && over(({ server, peer }) => server.rate / peer.rate),
    costs: Object.fromEntries(costs),
    loadBusy: Math.max(...names.map((name) => over((figures) => figures[name].loadBusy))),
  };
}
