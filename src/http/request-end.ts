// The end of a request, and the requests of one connection that wait for their answers.
import type { FastifyReply } from 'fastify';
import type { RequestListener, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { oncePer } from '../lib/collections.ts';
import { connectionLimits } from './limits.ts';

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

/**
 * The one end of a request: calls `then` once, when the answer is sent or the client has left. `limitPipelines` emits
 * `close` for requests that wait, too.
 */
export function onEnded({ raw }: FastifyReply, then: () => void): void {
  if (raw.req.socket.destroyed) then();
  else raw.once('close', then);
}
