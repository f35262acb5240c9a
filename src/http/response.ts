// What every answer of Node's server is: it leaves in one piece, is not kept for clients who do not take it, and ends the connection
// once the server is closing. Node asks for a class, so this is one.
import { type IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

export type ResponseOptions = {
  readonly isClosing: () => boolean;
  /** How long nothing may move on a connection on which something is left to be sent. */
  readonly untakenMs: number;
};

export function createResponseClass({ isClosing, untakenMs }: ResponseOptions): typeof ServerResponse {
  /** The time-out of Node's server would be set at every request, even where its answer leaves at once: that costs a good deal more. */
  function watch(socket: Socket | null): void {
    if (socket && socket.writableLength > 0) socket.setTimeout(untakenMs);
  }

  return class<Request extends IncomingMessage> extends ServerResponse<Request> {
    override writeHead(status: number, ...rest: unknown[]): this;
    override writeHead(status: number, reason?: unknown, headers?: unknown): this {
      // A connection that is kept would keep the server from closing.
      if (isClosing()) this.shouldKeepAlive = false;
      return super.writeHead(status, reason as string, headers as []);
    }

    /** Node's own writes a text and then nothing, to learn when it is gone: two pieces, which cost a good deal more than one. */
    override end(...given: unknown[]): this;
    override end(chunk?: unknown, encoding?: unknown, done?: unknown): this {
      const { socket } = this;
      const isText = typeof chunk === 'string' && chunk !== '' && typeof encoding !== 'function';
      if (isText && socket?.writable && this.headersSent) {
        socket.cork();
        this.write(chunk, (encoding ?? 'utf8') as BufferEncoding);
        socket.uncork();
        super.end(done as () => void);
      } else {
        super.end(chunk, encoding as BufferEncoding, done as () => void);
      }
      watch(socket);
      return this;
    }

    /** An answer that was made while others were being sent is sent here. */
    override assignSocket(socket: Socket): void {
      super.assignSocket(socket);
      watch(socket);
    }
  };
}
