// A whole server with deliveries that wait, in a process of its own: its arguments are how many, and the black holes they are for. It
// tells the most memory that was resident. Only callers are left out, which would take minutes: what they publish goes to a eventPublisher.
import { pino } from 'pino';
import { createApp } from '../dist/app.js';
import { sampleCatalog } from '../dist/catalog/sample.js';
import { createMemoryStore } from '../dist/store/memory.js';
import { createTasks } from '../dist/tasks.js';
import { createSimulatedExecutor } from '../dist/upgrades/executors/simulated.js';
import { deliveries } from '../dist/webhooks/delivery.js';
import { createHttpClient } from '../dist/webhooks/http-client.js';
import { createEventPublisher } from '../dist/webhooks/event-publisher.js';
import { realRuntime } from '../dist/runtime.js';
import { config, news, register, set } from './engine.js';

const [, , pending, ...urls] = process.argv;
const store = createMemoryStore();
const runtime = { ...realRuntime, post: createHttpClient(config.webhookAllowCidrs).post };
const app = await createApp({
  config,
  store,
  runtime,
  executor: createSimulatedExecutor({ runtime, stepMs: 0, failures: new Map() }),
  version: 'bench',
  logger: pino({ level: config.logLevel }),
  wsdl: '',
  assets: { stylesheet: '', script: '', icon: '' },
  catalog: sampleCatalog,
  adminPassword: 'not used here',
});
await app.http.listen({ host: config.host, port: config.port });
const tasks = createTasks(runtime, () => undefined);
const eventPublisher = createEventPublisher({ store, runtime, tasks, maxPending: config.webhookMaxPending });
// None is given up while this runs.
await set(store, { notificationTimeOutInSeconds: 60 });
await register(store, urls);

let most = 0;
for (let n = 0; n < Number(pending) / urls.length; n += 1) {
  // Every event has a text of its own, as if it had come in a request.
  await eventPublisher.publish({ ...news, data: JSON.stringify({ ...JSON.parse(news.data), number: n }) });
  if (n % 100 === 0) await runtime.yieldToEventLoop();
  most = Math.max(most, process.memoryUsage.rss());
}
// Long enough for the deliveryWorker to have begun, and for the collector if it wants to.
await runtime.sleep(500);
most = Math.max(most, process.memoryUsage.rss());
process.send({ pending: store.waiting(deliveries), megabytes: most / 1024 ** 2 });
process.on('disconnect', () => process.exit());
