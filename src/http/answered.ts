// Reports when an answer was sent, or when its connection has ended.
import type { FastifyReply } from 'fastify';
import type { Socket } from 'node:net';

/** One listener for each connection, which may have several requests. */
const callbacksOf = new WeakMap<Socket, Set<() => void>>();

/**
 * Calls `release` once, when the answer is sent or its connection has ended. Node emits `close` for a response only if it
 * is its turn on the connection, and not again for a connection that has ended before.
 */
export function onAnswered({ raw }: FastifyReply, release: () => void): void {
  const { socket } = raw.req;
  if (socket.destroyed) return release();
  const callbacks = callbacksOf.get(socket) ?? listen(socket);
  const call = () => {
    if (callbacks.delete(call)) release();
  };
  callbacks.add(call);
  raw.once('close', call);
}

function listen(socket: Socket): Set<() => void> {
  const callbacks = new Set<() => void>();
  callbacksOf.set(socket, callbacks);
  socket.once('close', () => {
    for (const call of callbacks) call();
  });
  return callbacks;
}
