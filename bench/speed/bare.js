// The limit of bench/speed.js: bare Fastify that answers with ready bytes from the folder in its argument. Without
// a folder it is the smallest server that answers a request.
import { readFile, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import fastify from 'fastify';

const app = fastify({ logger: { level: process.env.LOG_LEVEL } });

/** The limit reads the body as the server under test does. Otherwise the ratio would include the cost of reading it. */
const readers = {
  nothing: () => undefined,
  xml: () =>
    app.addContentTypeParser('text/xml', { parseAs: 'buffer' }, (_request, body, done) => done(null, body)),
  async form() {
    const { default: formbody } = await import('@fastify/formbody');
    await app.register(formbody);
  },
  async multipart() {
    const { default: multipart } = await import('@fastify/multipart');
    const limits = { parts: 64, fields: 64, files: 64, fileSize: 10 * 1024 ** 2 };
    await app.register(multipart, { limits });
    app.addHook('preHandler', async (request) => {
      for await (const part of request.parts()) if (part.type === 'file') await part.toBuffer();
    });
  },
};

async function mountAnswers(folder) {
  const { method, path, body, status, contentType } = JSON.parse(
    await readFile(join(folder, 'limit.json'), 'utf8'),
  );
  const names = (await readdir(folder)).filter((name) => name.endsWith('.answer')).sort();
  const answers = await Promise.all(names.map((name) => readFile(join(folder, name))));
  await readers[body]();
  let asked = 0;
  app.route({
    method,
    url: path,
    handler(_request, reply) {
      const answer = answers[asked % answers.length];
      asked += 1;
      return reply.code(status).header('content-type', contentType).send(answer);
    },
  });
}

const [folder] = process.argv.slice(2);
if (folder !== undefined) await mountAnswers(folder);
app.get('/health', () => ({ status: 'ok' }));
const address = await app.listen({ host: '127.0.0.1', port: 0, listenTextResolver: () => 'listening' });
process.stderr.write(`The limit listens on ${address}\n`);
