// Checks every JSON answer of the servers in this process against the schema that its route declares. A wrong
// answer becomes HTTP 500. Vitest loads this file for the servers of the tests; check-process.js imports it, so it
// must be JavaScript.
import { Buffer } from 'node:buffer';
import { subscribe } from 'node:diagnostics_channel';
import { isDeepStrictEqual } from 'node:util';
import { gunzipSync } from 'node:zlib';

/** What was wrong, for a check at the end of a test file. @type {string[]} */
export const wrongAnswers = [];

// Fastify publishes this event for every server before it has any route.
subscribe('fastify.initialization', (message) => {
  const { fastify } = /** @type {{ fastify: import('fastify').FastifyInstance }} */ (message);
  fastify.addHook('onSend', async (request, reply, payload) => {
    const isJson = String(reply.getHeader('content-type')).startsWith('application/json');
    const isText = typeof payload === 'string' || Buffer.isBuffer(payload);
    if (!isJson || !isText || request.method === 'HEAD') return payload;
    const isCompressed = reply.getHeader('content-encoding') === 'gzip';
    const json = (isCompressed ? gunzipSync(payload) : payload).toString();
    const problem = findProblem(request, reply.statusCode, JSON.parse(json));
    if (problem === undefined) return payload;
    const text = `${request.method} ${request.routeOptions.url} ${reply.statusCode}: ${problem}\n${json.slice(0, 2000)}`;
    wrongAnswers.push(text);
    throw new Error(`The answer does not have the declared schema. ${text}`);
  });
});

/**
 * @param {import('fastify').FastifyRequest} request
 * @param {number} status
 * @param {any} json
 * @returns {string | undefined}
 */
function findProblem(request, status, json) {
  if (json?.status === 'error') return findErrorProblem(json);
  const { rest } = request.routeOptions.config;
  if (!rest) return undefined;
  if (status !== 200) return 'an error needs the body of an error';
  const { operation, resource } = rest.entry;
  return (operation ?? resource).answer.safeParse(json).error?.message;
}

/** @param {any} json */
function findErrorProblem({ error, ...rest }) {
  const isError =
    isDeepStrictEqual(rest, { status: 'error' }) &&
    isDeepStrictEqual(Object.keys(error), ['code', 'message', 'details']) &&
    Number.isInteger(error.code) &&
    typeof error.message === 'string' &&
    Array.isArray(error.details) &&
    error.details.every((/** @type {unknown} */ detail) => typeof detail === 'string');
  return isError ? undefined : 'not the body of an error';
}
