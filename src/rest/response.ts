// The format of an answer: json, pjson (indented), html, or csv where a resource has an export.
import type { FastifyReply } from 'fastify';
import { prefersHtml } from '../http/accept.ts';
import { sendJson } from '../http/json.ts';
import { CachedJson, type Json, plainJson } from '../lib/json.ts';

export const formats = ['json', 'pjson', 'html'] as const;

/** The formats of a tree without pages. */
export const dataFormats = ['json', 'pjson'] as const;

export type Format = (typeof formats)[number] | 'csv';

export function readFormat(
  f: string | undefined,
  accept: string | undefined,
  allowed: readonly Format[] = formats,
): Format | undefined {
  const name = f?.trim().toLowerCase() ?? '';
  if (name === '') return allowed.includes('html') && prefersHtml(accept) ? 'html' : 'json';
  return allowed.find((format) => format === name);
}

export function sendAnswer(
  reply: FastifyReply,
  status: number,
  answer: Json | CachedJson,
  format: Format | undefined,
): FastifyReply {
  if (format === 'pjson') return sendJson(reply, status, `${JSON.stringify(plainJson(answer), null, 2)}\n`);
  return sendJson(reply, status, answer instanceof CachedJson ? answer.bytes : JSON.stringify(answer));
}
