// Limits the memory and the time that clients use who do not read their answers.
//
// Answers of at most `minBytes` fit into the buffers of the operating system. A larger answer stays in memory until
// the client has read it, so all of them together are limited. Answers that share their bytes count once: a listing
// that many clients get must be one buffer for all of them (SharedAnswers), a page, or a stream that waits for its
// reader.
import type { FastifyInstance, FastifyReply } from 'fastify';
import type { RequestListener } from 'node:http';
import type { Socket } from 'node:net';
import { networkOf } from '../lib/address.ts';
import { oncePer } from '../lib/collections.ts';
import { ServiceError } from '../lib/errors.ts';
import { clientAddress } from './client-address.ts';
import { connectionLimits, largeAnswers } from './limits.ts';

declare module 'fastify' {
  interface FastifyInstance {
    answersInMemory: AnswersInMemory;
  }
}

type Held = { readonly network: string; answers: number };

/** The bytes of large answers that are being sent. */
class AnswersInMemory {
  readonly #held = new Map<Buffer, Held>();

  /** Counts the bytes until the answer is sent or its connection has ended. Throws if there are too many. */
  hold(reply: FastifyReply, bytes: Buffer): void {
    if (bytes.length <= largeAnswers.minBytes) return;
    const held = this.#held.get(bytes) ?? this.#add(bytes, networkOf(clientAddress(reply.request)));
    held.answers += 1;
    onAnswered(reply, () => {
      held.answers -= 1;
      if (held.answers === 0) this.#held.delete(bytes);
    });
  }

  #add(bytes: Buffer, network: string): Held {
    let [total, ofNetwork] = [0, 0];
    for (const [{ length }, other] of this.#held) {
      total += length;
      if (other.network === network) ofNetwork += length;
    }
    const isExceeded =
      total + bytes.length > largeAnswers.maxBytes ||
      ofNetwork + bytes.length > largeAnswers.maxBytesPerNetwork;
    // One answer is always possible, whatever its size.
    if (isExceeded && total > 0)
      throw new ServiceError('unavailable', 'The server is sending too many large answers.', {
        retryAfterSeconds: 5,
      });
    const held = { network, answers: 0 };
    this.#held.set(bytes, held);
    return held;
  }
}

export function limitAnswersInMemory(app: FastifyInstance): void {
  app.decorate('answersInMemory', new AnswersInMemory());
  app.addHook('onSend', (_request, reply, payload, done) => {
    const isLarge =
      (typeof payload === 'string' || Buffer.isBuffer(payload)) && payload.length > largeAnswers.minBytes;
    if (!isLarge) return done(null, payload);
    try {
      const bytes = typeof payload === 'string' ? Buffer.from(payload) : payload;
      app.answersInMemory.hold(reply, bytes);
      done(null, bytes);
    } catch (error) {
      // The error is not compressed.
      void reply.removeHeader('content-encoding');
      done(error as ServiceError);
    }
  });
}

const { maxUnanswered } = connectionLimits;

class Pipeline {
  unanswered = 0;
  /** The requests since other connections had a turn. */
  burst = 0;

  readonly onAnswered = () => {
    this.unanswered -= 1;
  };
}

/**
 * Closes a connection if more than `maxUnanswered` of its requests wait for their answers. After as many requests of one
 * connection, the others have a turn. Without this, Node starts all requests of a pipeline that arrive together, and
 * reads up to 2 MiB of one connection before it reads another. A pipeline may have thousands of requests, so this runs
 * before Fastify.
 */
export function limitPipelines(handle: RequestListener): RequestListener {
  const pipelineOf = oncePer<Socket, Pipeline>(() => new Pipeline());
  return (request, response) => {
    const { socket } = request;
    const pipeline = pipelineOf(socket);
    pipeline.unanswered += 1;
    if (pipeline.unanswered > maxUnanswered) return void socket.destroy();
    response.on('close', pipeline.onAnswered);
    pipeline.burst += 1;
    if (pipeline.burst === maxUnanswered) setImmediate(() => (pipeline.burst = 0));
    if (pipeline.burst <= maxUnanswered) return handle(request, response);
    setImmediate(() => {
      if (!socket.destroyed) handle(request, response);
    });
  };
}

/**
 * Calls `release` once, when the answer is sent or its connection has ended. Node emits `close` for a response only if it
 * is its turn on the connection, and not again for a connection that has ended before.
 */
export function onAnswered({ raw }: FastifyReply, release: () => void): void {
  const { socket } = raw.req;
  if (socket.destroyed) return release();
  const callbacks = callbacksOf(socket);
  const call = () => {
    if (callbacks.delete(call)) release();
  };
  callbacks.add(call);
  raw.on('close', call);
}

/** One listener for each connection, which may have several requests. */
const callbacksOf = oncePer((socket: Socket) => {
  const callbacks = new Set<() => void>();
  socket.once('close', () => {
    for (const call of callbacks) call();
  });
  return callbacks;
});
