// The format of an answer: json, pjson (indented), html, or csv where a resource has an export.
import type { FastifyReply } from 'fastify';
import { type Body, jsonHeaders, prefersHtml, sendJson, SharedAnswers } from '../http/answers.ts';
import { type Json, SharedJson, toText } from '../lib/json.ts';

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

const sharedAnswers = new SharedAnswers();

/** For Fastify: an answer that is sent already, or the body to send. */
export function sendAnswer(
  reply: FastifyReply,
  answer: Json | SharedJson,
  format: Format | undefined,
): FastifyReply | Promise<Body> {
  return answer instanceof SharedJson
    ? sharedBody(reply, answer, spaceOf(format))
    : sendPlainAnswer(reply, 200, answer, format);
}

async function sharedBody(reply: FastifyReply, answer: SharedJson, space: number): Promise<Body> {
  const bytes = await answer.bytes(space);
  return sharedAnswers.bodyFor(reply.headers(jsonHeaders), [bytes], bytes);
}

export function sendPlainAnswer(
  reply: FastifyReply,
  status: number,
  answer: Json,
  format: Format | undefined,
): FastifyReply {
  return sendJson(reply, status, toText(answer, spaceOf(format)));
}

function spaceOf(format: Format | undefined): number {
  return format === 'pjson' ? 2 : 0;
}
