// A server with pending deliveries in its own process, which sends the peak of its resident memory to the parent. It publishes
// events without HTTP requests, which would take minutes.
import { pino } from 'pino';
import { createApp } from '../dist/app.js';
import { sampleCatalog } from '../dist/catalog/sample.js';
import { createMemoryStore } from '../dist/store/memory.js';
import { createTasks } from '../dist/tasks.js';
import { createSimulatedExecutor } from '../dist/upgrades/executors/simulated.js';
import { deliveries } from '../dist/webhooks/delivery.js';
import { createHttpClient } from '../dist/webhooks/http-client.js';
import { EventPublisher } from '../dist/webhooks/event-publisher.js';
import { realRuntime as runtime } from '../dist/runtime.js';
import { config, eventDraft, limits, register, set } from './engine.js';

const [, , pending, ...urls] = process.argv;
const store = createMemoryStore();
const app = await createApp({
  config,
  store,
  runtime,
  httpClient: createHttpClient(config.webhookAllowCidrs),
  executor: createSimulatedExecutor({ runtime, stepMs: 0, failures: new Map() }),
  version: 'bench',
  logger: pino({ level: config.logLevel }),
  wsdl: '',
  assets: { stylesheet: '', script: '', icon: '' },
  catalog: sampleCatalog,
  adminHash: () => Promise.resolve('not used'),
});
await app.http.listen({ host: config.host, port: config.port });
const tasks = createTasks(runtime, () => undefined);
const eventPublisher = new EventPublisher({ store, runtime, tasks, limits });
// The longest timeout, so that no attempt ends during the measurement.
await set(store, { notificationTimeOutInSeconds: 60 });
await register(store, urls);

let peak = 0;
for (let n = 0; n < Number(pending) / urls.length; n += 1) {
  // Events from requests do not share a string, so each event has its own here too.
  const data = JSON.stringify({ ...JSON.parse(eventDraft.data), number: n });
  await eventPublisher.publish({ ...eventDraft, data });
  if (n % 100 === 0) await runtime.yieldToEventLoop();
  peak = Math.max(peak, process.memoryUsage.rss());
}
// During this pause the delivery worker starts its attempts.
await runtime.sleep(500);
peak = Math.max(peak, process.memoryUsage.rss());
process.send({ pending: store.waiting(deliveries), megabytes: peak / 1024 ** 2 });
process.on('disconnect', () => process.exit());
