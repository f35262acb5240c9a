// Answers about a large catalog: rendering does not block the event loop, and clients that do not read share the
// content.
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { type Socket, connect } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { createMemoryStore } from '../../src/app/stores/memory-store.ts';
import { CatalogCache } from '../../src/catalog/catalog-cache.ts';
import { type InitialCatalog, editService, loadCatalog, services } from '../../src/catalog/catalog.ts';
import { catalogNames, catalogOperations } from '../../src/catalog/soap.ts';
import { checkCost, cpuMs } from '../kit/cost.ts';
import { startProcess } from '../kit/process.ts';
import { namespace } from '../kit/server.ts';
import { defaultStoreOptions } from '../kit/store.ts';
import { write } from '../hard/wire.ts';

function catalogOf(count: number, description: string): InitialCatalog {
  const traits = { capabilities: '', parentType: '', url: null, access: 'public' as const };
  return {
    folders: [],
    services: Array.from({ length: count }, (_, n) => ({
      folderName: '/',
      // The names are not in the order of the listing.
      serviceName: `Service${(n * 7919) % count}`,
      type: 'MapServer',
      description,
      ...traits,
    })),
  };
}

it.each([
  ['many services', catalogOf(50_000, 'A description.')],
  ['texts that must be escaped', catalogOf(1_600, '&'.repeat(4_000))],
])('a listing of %s is rendered in more than 100 slices', { timeout: 60_000 }, async (_what, catalog) => {
  const store = createMemoryStore(defaultStoreOptions);
  await store.update((transaction) => loadCatalog(transaction, catalog, 1));
  let slices = 0;
  let start = 0;
  const runtime = {
    yieldToEventLoop: async () => {
      slices += 1;
      // The longest slice is the listing after the change. Without slices it would be the whole rendering.
      checkCost(150, cpuMs() - start);
      await new Promise(setImmediate);
      start = cpuMs();
    },
  };
  const catalogCache = new CatalogCache(store, runtime);
  const operations = catalogOperations({
    catalogCache,
    names: catalogNames('svc', 'Product'),
    requireTokens: false,
    baseUrl: () => 'http://localhost:8080/services',
    tokenServiceUrl: () => '',
  });
  const list = async () => {
    start = cpuMs();
    const call = { arguments: {}, caller: undefined };
    const texts = (await operations.GetServiceDescriptions.answer(call)).toString();
    return [...texts.matchAll(/<Name>(.*?)<\/Name>/g)].map(([, name]) => name);
  };
  // As at the start of the server.
  catalogCache.listing('public');
  const names = await list();
  expect(names).toEqual(catalog.services.map(({ serviceName }) => serviceName).sort());
  const [first] = store.all(services);
  if (!first) throw new Error('The catalog is empty.');
  const limits = { MAX_SERVICES: 1_000_000 };
  await store.update((transaction) =>
    editService(transaction, first, { description: '' }, { at: 2, limits }),
  );
  expect(await list()).toEqual(names);
  expect(slices).toBeGreaterThan(100);
});

function residentMegabytes(pid: number | undefined): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1]) / 1024;
}

it(
  '30 clients that do not read their answers in another namespace share one content',
  { timeout: 60_000 },
  async () => {
    const catalog = catalogOf(4_000, 'd'.repeat(4_000));
    const files = { 'catalog.json': JSON.stringify({ services: catalog.services }) };
    const { child, listening, kill } = startProcess({ CATALOG_FILE: 'catalog.json' }, files);
    const port = Number(new URL(await listening).port);
    const body = (version: string) =>
      `<e:Envelope xmlns:e="http://schemas.xmlsoap.org/soap/envelope/"><e:Body><GetServiceDescriptions xmlns="${namespace.replace('10.0', version)}"/></e:Body></e:Envelope>`;

    /** Sends a call and reads nothing but the beginning of the answer. */
    async function call(version: string): Promise<string> {
      const socket: Socket = connect(port, '127.0.0.1');
      onTestFinished(() => void socket.destroy());
      const headers = { 'content-type': 'text/xml' };
      socket.write(write({ method: 'POST', url: '/services', headers, body: body(version) }, true));
      const [bytes] = (await once(socket, 'data')) as [Buffer];
      socket.pause();
      return bytes.subarray(0, 1000).toString();
    }

    expect(await call('10.0')).toContain(`<GetServiceDescriptionsResponse xmlns="${namespace}">`);
    const before = residentMegabytes(child.pid);
    const answers = await Promise.all(Array.from({ length: 30 }, (_, n) => call(`9.${n}`)));
    for (const [n, answer] of answers.entries()) {
      expect(answer).toContain(
        `<GetServiceDescriptionsResponse xmlns="${namespace.replace('10.0', `9.${n}`)}">`,
      );
      expect(answer).toMatch(/^content-length: 16\d{6}\r$/m);
    }
    const growth = residentMegabytes(child.pid) - before;
    await kill();
    // A copy for each request would take 500 MB.
    expect(growth).toBeLessThan(100);
  },
);
