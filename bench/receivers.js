// The receivers of bench/webhooks.js, in their own process so that they use none of the engine's CPU time. A black hole accepts a
// connection and never answers.
import { once } from 'node:events';
import { createServer as createHttpServer } from 'node:http';
import { createServer } from 'node:net';

const createAnswering = () =>
  createHttpServer((request, response) => {
    request.resume();
    request.on('end', () => response.end('ok'));
  });
const createBlackHole = () => createServer((socket) => socket.on('error', () => undefined));

async function listen(server) {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return `http://127.0.0.1:${server.address().port}/hook`;
}

const listenAll = (count, create) => Promise.all(Array.from({ length: count }, () => listen(create())));

const [answering, blackHoles] = process.argv.slice(2).map(Number);
process.send({
  answering: await listenAll(answering, createAnswering),
  blackHoles: await listenAll(blackHoles, createBlackHole),
});
process.on('disconnect', () => process.exit());
