// Limits the memory and the time that clients use who do not read their answers.
//
// Answers of at most `minBytes` fit into the buffers of the operating system. A larger answer stays in memory until
// the client has read it, so all of them together are limited. Answers that share their bytes count once: a listing
// that many clients get must be one buffer for all of them (SharedAnswers), a page, or a stream that waits for its
// reader.
import type { FastifyInstance, FastifyReply } from 'fastify';
import type { RequestListener, ServerResponse } from 'node:http';
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
    const held = this.#held.get(bytes) ?? this.#add(reply, bytes);
    held.answers += 1;
    onAnswered(reply, () => {
      held.answers -= 1;
      if (held.answers === 0) this.#held.delete(bytes);
    });
  }

  #add(reply: FastifyReply, bytes: Buffer): Held {
    const network = networkOf(clientAddress(reply.request));
    let [total, ofNetwork] = [bytes.length, bytes.length];
    for (const [{ length }, other] of this.#held) {
      total += length;
      if (other.network === network) ofNetwork += length;
    }
    const isExceeded = total > largeAnswers.maxBytes || ofNetwork > largeAnswers.maxBytesPerNetwork;
    // One answer is always possible, whatever its size.
    if (isExceeded && this.#held.size > 0) {
      // The error is not compressed.
      void reply.removeHeader('content-encoding');
      throw new ServiceError('unavailable', 'The server is sending too many large answers.', {
        retryAfterSeconds: 5,
      });
    }
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
    const bytes = typeof payload === 'string' ? Buffer.from(payload) : payload;
    app.answersInMemory.hold(reply, bytes);
    done(null, bytes);
  });
}

const { maxUnanswered } = connectionLimits;

class Pipeline {
  readonly unanswered = new Set<ServerResponse>();
  /** The requests since other connections had a turn. */
  burst = 0;

  constructor(socket: Socket) {
    // Before 24.16, Node emits no `close` for a queued response. A microtask runs after what Node emits.
    const closeAll = () => this.unanswered.forEach((response) => response.emit('close'));
    socket.once('close', () => queueMicrotask(closeAll));
  }
}

/**
 * Closes a connection if more than `maxUnanswered` of its requests wait for their answers. After as many requests of one
 * connection, the others have a turn. Without this, Node starts all requests of a pipeline that arrive together, and
 * reads up to 2 MiB of one connection before it reads another. A pipeline may have thousands of requests, so this runs
 * before Fastify.
 */
export function limitPipelines(handle: RequestListener): RequestListener {
  const pipelineOf = oncePer((socket: Socket) => new Pipeline(socket));
  return (request, response) => {
    const { socket } = request;
    const pipeline = pipelineOf(socket);
    pipeline.unanswered.add(response);
    if (pipeline.unanswered.size > maxUnanswered) return void socket.destroy();
    response.on('close', () => pipeline.unanswered.delete(response));
    pipeline.burst += 1;
    if (pipeline.burst === maxUnanswered) setImmediate(() => (pipeline.burst = 0));
    if (pipeline.burst <= maxUnanswered) return handle(request, response);
    setImmediate(() => {
      if (!socket.destroyed) handle(request, response);
    });
  };
}

/** Calls `release` once, when the answer is sent or its connection has ended: `limitPipelines` emits `close` then too. */
export function onAnswered({ raw }: FastifyReply, release: () => void): void {
  if (raw.req.socket.destroyed) release();
  else raw.once('close', release);
}
