// The body of a request as a form. What is being read is in memory: of callers who have not shown a good token yet only so many forms
// are read at once, and of all together only so many bytes.
import type { FastifyReply, FastifyRequest } from 'fastify';
import { ServiceError } from '../errors.ts';
import { type Form, type Wanted, parseUrlencoded } from './form.ts';
import { readMultipart } from './multipart.ts';

/** Over all trees of a server, each within this time. */
const anonymousForms = { most: 16, withinMs: 60_000 };

/** Over all trees of a server, or as much as two forms may have. */
const mostBytes = 128 * 1024 ** 2;

/** One for all trees of a server. */
export type FormsBeingRead = { anonymous: number; bytes: number };

export type BodyOptions = {
  readonly formsBeingRead: FormsBeingRead;
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>;
  /** Lets everything else have its turn. */
  readonly yieldToEventLoop: () => Promise<void>;
  readonly maxFileBytes: number;
};

export type ReadBody = (
  request: FastifyRequest,
  reply: FastifyReply,
  wanted: Wanted,
  options: BodyOptions,
) => Form | Promise<Form>;

export const readUrlencodedBody: ReadBody = (request, _reply, wanted) => {
  const body = request.body as { urlencoded: string } | undefined;
  return parseUrlencoded(body?.urlencoded ?? '', wanted);
};

export const readMultipartBody: ReadBody = async (request, reply, wanted, options) => {
  if (request.progress?.identity) return readParts(request, wanted, options);
  const { formsBeingRead, sleep } = options;
  if (formsBeingRead.anonymous >= anonymousForms.most) throw tooMany();
  formsBeingRead.anonymous += 1;
  const hasArrived = new AbortController();
  const tooLate = sleep(anonymousForms.withinMs, hasArrived.signal).then(() => {
    void reply.header('connection', 'close');
    throw new ServiceError('invalid', 'The form did not arrive in time.');
  });
  tooLate.catch(() => undefined);
  try {
    return await Promise.race([readParts(request, wanted, options), tooLate]);
  } finally {
    formsBeingRead.anonymous -= 1;
    hasArrived.abort();
  }
};

async function readParts(
  request: FastifyRequest,
  wanted: Wanted,
  { formsBeingRead, maxFileBytes, yieldToEventLoop }: BodyOptions,
): Promise<Form> {
  let own = 0;
  const most = Math.max(mostBytes, 2 * maxFileBytes);
  const onBytes = (count: number) => {
    own += count;
    formsBeingRead.bytes += count;
    if (formsBeingRead.bytes > most) throw tooMany();
  };
  try {
    return await readMultipart(request, wanted, { maxFileBytes, onBytes, yieldToEventLoop });
  } finally {
    formsBeingRead.bytes -= own;
  }
}

function tooMany(): ServiceError {
  return new ServiceError('unavailable', 'Too many forms are being read.', { retryAfterSeconds: 5 });
}
