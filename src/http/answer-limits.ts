// Limits the memory and the time that clients use who do not read their answers.
//
// Answers of at most `minBytes` fit into the buffers of the operating system. A larger answer stays in memory until
// the client has read it, so all of them together are limited. Answers that share their bytes count once: a listing
// that many clients get must be one buffer for all of them (SharedAnswers), a page, or a stream that waits for its
// reader.
import type { FastifyInstance, FastifyReply } from 'fastify';
import { networkOf } from '../lib/address.ts';
import { ServiceError } from '../lib/errors.ts';
import { clientAddress } from './client-address.ts';
import { largeAnswers } from './limits.ts';
import { onEnded } from './request-end.ts';

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
    onEnded(reply, () => {
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
