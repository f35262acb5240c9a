// Measures frequent reads on PostgreSQL, compared with the memory store.
import { compare, perSecond } from '../kit.js';
import { startServer } from '../server.js';

const connections = 16;
const least = 0.9;

const soap = (operation) =>
  `<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body><${operation} xmlns="http://www.example.com/schemas/Product/10.0"/></s:Body></s:Envelope>`;

const reads = {
  'catalog reads': (server) => server.askSoap('/services', soap('GetServiceDescriptions')),
  'token checks': (server) => server.ask('GET', '/admin/mode'),
};

async function measureOnce(server, read, ms) {
  const started = performance.now();
  let count = 0;
  async function repeat() {
    while (performance.now() - started < ms) {
      const { status } = await read(server);
      if (status !== 200) throw new Error(`unexpected status ${status}`);
      count += 1;
    }
  }
  await Promise.all(Array.from({ length: connections }, repeat));
  return perSecond(count, performance.now() - started);
}

export async function measureReads({ databases, ms, rounds, entry, report }) {
  const databaseUrl = await databases.create();
  const inMemory = await startServer({ entry });
  const durable = await startServer({ storeUrl: databaseUrl, entry });
  await inMemory.signIn();
  await durable.signIn();
  const rows = [];
  for (const [name, read] of Object.entries(reads)) {
    const measured = [];
    for (let round = 0; round <= rounds; round += 1) {
      const baseline = await measureOnce(inMemory, read, ms / 2);
      measured.push({ baseline, measured: await measureOnce(durable, read, ms / 2) });
    }
    measured.shift(); // The first round is a warm-up.
    const result = compare(measured);
    rows.push({
      figure: `${name}: ${result.measured.toFixed(0)}/s to ${result.baseline.toFixed(0)}/s of the memory store`,
      required: `at least ${least}`,
      measured: result.ratio.toFixed(2),
      isMet: result.ratio >= least,
    });
    report(`${name}: ${result.ratio.toFixed(2)}`);
  }
  await inMemory.stop();
  await durable.stop();
  await databases.drop(databaseUrl);
  return rows;
}
