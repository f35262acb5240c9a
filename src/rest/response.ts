// The format of an answer: json, pjson (indented), html, or csv where a resource has an export.
import type { FastifyReply } from 'fastify';
import { type Body, jsonBody, jsonHeaders, SharedAnswers } from '../http/answers.ts';
import { type Json, SharedJson, toText } from '../lib/json.ts';

export const formats = ['json', 'pjson', 'html'] as const;

/** The formats of a tree without pages. */
export const dataFormats = ['json', 'pjson'] as const;

export type Format = (typeof formats)[number] | 'csv';

export function readFormat(
  f: string | undefined,
  usual: Format,
  allowed: readonly Format[] = formats,
): Format | undefined {
  const name = f?.trim().toLowerCase() ?? '';
  if (name === '') return allowed.find((format) => format === usual) ?? 'json';
  return allowed.find((format) => format === name);
}

const sharedAnswers = new SharedAnswers();

/** Adds the headers of an answer, and returns its body. */
export function bodyOf(
  reply: FastifyReply,
  answer: Json | SharedJson,
  format: Format | undefined,
): Body | Promise<Body> {
  const space = format === 'pjson' ? 2 : 0;
  return answer instanceof SharedJson
    ? sharedBody(reply, answer, space)
    : jsonBody(reply, toText(answer, space));
}

function sharedBody(reply: FastifyReply, answer: SharedJson, space: number): Body | Promise<Body> {
  const bytes = answer.bytes(space);
  const share = (known: Buffer) => sharedAnswers.bodyFor(reply.headers(jsonHeaders), [known], known);
  return Buffer.isBuffer(bytes) ? share(bytes) : bytes.then(share);
}
