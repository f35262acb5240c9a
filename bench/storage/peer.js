// What the queues that Steward is compared with share: an HTTP server that takes events, and the request to a receiver.
import { once } from 'node:events';
import { createServer } from 'node:http';
import { Agent, request } from 'undici';

/**
 * Steward sends at most four requests to one receiver at the same time, over all processes. The others send as many
 * in total.
 */
export const concurrencyOf = (receivers, processes) => Math.ceil((4 * receivers) / processes);

const dispatcher = new Agent();
const headers = { 'content-type': 'application/json', 'user-agent': 'Steward/bench' };

export async function send(url, body) {
  const answer = await request(url, { method: 'POST', dispatcher, headers, body });
  const text = await answer.body.text();
  if (answer.statusCode !== 200) throw new Error(`a receiver answered ${answer.statusCode}`);
  return text;
}

/** Serves `publish` over HTTP and sends the address to the parent. */
export async function servePublishing(publish) {
  const server = createServer((incoming, response) => {
    let body = '';
    incoming.setEncoding('utf8');
    incoming.on('data', (chunk) => (body += chunk));
    incoming.on('end', () => {
      const { eventId, data } = JSON.parse(body);
      publish(eventId, data).then(
        () => response.end('{"status":"success"}'),
        (error) => response.writeHead(500).end(error.message),
      );
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  process.on('disconnect', () => process.exit());
  process.send(`http://127.0.0.1:${server.address().port}`);
}
