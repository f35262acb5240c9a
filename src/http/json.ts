// JSON answers, with the headers that every one of them carries.
import type { FastifyReply } from 'fastify';
import { sendText } from './compression.ts';

export const jsonHeaders = {
  'content-type': 'application/json; charset=utf-8',
  'cache-control': 'no-store',
  'cross-origin-resource-policy': 'same-origin',
};

export function sendJson(reply: FastifyReply, status: number, body: string | Buffer | object): FastifyReply {
  const isSerialized = typeof body === 'string' || Buffer.isBuffer(body);
  const text = isSerialized ? body : JSON.stringify(body);
  return sendText(reply.code(status).headers(jsonHeaders), text);
}
