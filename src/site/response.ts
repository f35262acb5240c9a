// What every answer of Node's server is: it leaves in one piece, and the connection with it once the server is closing.
import { type IncomingMessage, ServerResponse } from 'node:http';

export function createResponse(isClosing: () => boolean): typeof ServerResponse {
  return class<Request extends IncomingMessage> extends ServerResponse<Request> {
    override writeHead(...given: unknown[]): this {
      // A connection that is kept would keep the server from closing.
      if (isClosing()) this.shouldKeepAlive = false;
      return super.writeHead(...(given as [number]));
    }

    /** Node's own writes a text and then nothing, to learn when it is gone: two pieces, which cost a good deal more than one. */
    override end(...given: unknown[]): this {
      const [text, encoding, done] = given;
      const isText = typeof text === 'string' && text !== '' && typeof encoding !== 'function';
      if (!isText || !this.headersSent || !this.socket) return super.end(...(given as []));
      this.socket.cork();
      this.write(text, (encoding as BufferEncoding | null) ?? 'utf8');
      this.socket.uncork();
      return super.end(...((done ? [done] : []) as []));
    }
  };
}
