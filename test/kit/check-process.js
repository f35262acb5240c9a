// Checks the answers and deliveries of a server in a process of its own. `startProcess` loads it with `node --import`. A wrong delivery ends
// the process: an error in a subscriber is an uncaught exception.
import { subscribe } from 'node:diagnostics_channel';
import './check-answers.js';
import { checkDelivery } from './check-deliveries.js';

subscribe('undici:request:create', (message) => {
  const { request } = /** @type {{ request: { headers: string[], body: unknown } }} */ (message);
  /** @type {Record<string, string>} */
  const headers = {};
  for (let index = 0; index < request.headers.length; index += 2)
    headers[request.headers[index] ?? ''] = request.headers[index + 1] ?? '';
  // Other requests, such as those to registries, have no such header.
  if (headers['webhook-id'] !== undefined) checkDelivery(headers, String(request.body));
});
