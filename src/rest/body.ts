// The body of a request as a form. Of callers who have not shown a good token yet only so many are read at once.
import type { FastifyReply, FastifyRequest } from 'fastify';
import { ServiceError } from '../errors.ts';
import { type Form, type Wanted, parseUrlencoded, readMultipart } from './form.ts';

/** Over all trees of a server, each within this time. */
const anonymousForms = { most: 16, withinMs: 60_000 };

export type BodyOptions = {
  /** How many of them are being read just now; one for all trees of a server. */
  readonly formsBeingRead: { count: number };
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>;
  readonly maxFileBytes: number;
};

export async function readBody(
  request: FastifyRequest,
  reply: FastifyReply,
  wanted: Wanted,
  { formsBeingRead, sleep, maxFileBytes }: BodyOptions,
): Promise<Form> {
  if (!request.isMultipart()) {
    const body = request.body as { urlencoded: string } | undefined;
    return parseUrlencoded(body?.urlencoded ?? '', wanted);
  }
  if (request.progress?.identity) return readMultipart(request, wanted, maxFileBytes);
  if (formsBeingRead.count >= anonymousForms.most) {
    throw new ServiceError('unavailable', 'Too many forms are being read.', { retryAfterSeconds: 5 });
  }
  formsBeingRead.count += 1;
  const hasArrived = new AbortController();
  const tooLate = sleep(anonymousForms.withinMs, hasArrived.signal).then(() => {
    void reply.header('connection', 'close');
    throw new ServiceError('invalid', 'The form did not arrive in time.');
  });
  tooLate.catch(() => undefined);
  try {
    return await Promise.race([readMultipart(request, wanted, maxFileBytes), tooLate]);
  } finally {
    formsBeingRead.count -= 1;
    hasArrived.abort();
  }
}
