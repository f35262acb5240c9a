// A raw connection to a server: sends bytes and reads the HTTP responses.
import { type Socket, connect } from 'node:net';

export type Answer = { status: number; headers: Record<string, string>; body: string };

export type Wire = {
  readonly socket: Socket;
  /** Sends a request. `isHead`: the response has no body, although its headers give a length. */
  readonly write: (bytes: string | Buffer, isHead?: boolean) => void;
  /** The number of sent requests. */
  readonly sent: () => number;
  /** The complete responses so far. */
  readonly answers: readonly Answer[];
  /** Resolves with the response of that number, or undefined if the connection closes before it is complete. */
  readonly answer: (number?: number) => Promise<Answer | undefined>;
  readonly isClosed: () => boolean;
  /** Resolves when the server has closed the connection or the connection has failed. */
  readonly closed: Promise<void>;
};

export function openWire(port: number): Wire {
  const answers: Answer[] = [];
  let rest = Buffer.alloc(0);
  let sent = 0;
  let expectsHead = false;
  let isClosed = false;
  let wake: () => void = () => undefined;
  // Half open: the client must notice when the server closes, and not close by itself.
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true, noDelay: true });
  const closed = new Promise<void>((resolve) => {
    const close = () => {
      isClosed = true;
      socket.destroy();
      wake();
      resolve();
    };
    socket.on('end', close);
    socket.on('close', close);
    // A reset during a write counts as closed.
    socket.on('error', close);
  });
  socket.on('data', (chunk: Buffer) => {
    rest = Buffer.concat([rest, chunk]);
    for (let found = readAnswer(rest, expectsHead); found; found = readAnswer(rest, expectsHead)) {
      rest = rest.subarray(found.length);
      if (found.answer.status >= 200) answers.push(found.answer);
    }
    wake();
  });
  return {
    socket,
    answers,
    closed,
    sent: () => sent,
    isClosed: () => isClosed,
    write: (bytes, isHead = false) => {
      sent += 1;
      expectsHead = isHead;
      socket.write(bytes);
    },
    answer: async (number = 0) => {
      while (!isClosed && answers.length <= number) await new Promise<void>((resolve) => (wake = resolve));
      return answers[number];
    },
  };
}

/** Sends one request on a new connection. Returns undefined if the server closes it without a response. */
export async function ask(port: number, bytes: string | Buffer): Promise<Answer | undefined> {
  const wire = openWire(port);
  wire.write(bytes);
  const answer = await wire.answer();
  wire.socket.destroy();
  return answer;
}

/** The bytes of a request. A content-length in `headers` is sent even if it is wrong. */
export function write(
  {
    method = 'GET',
    url,
    headers = {},
    body = '',
  }: { method?: string; url: string; headers?: Record<string, string>; body?: string },
  isKept = false,
): Buffer {
  const all = {
    host: 'localhost',
    ...(!isKept && { connection: 'close' }),
    ...((body !== '' || method === 'POST') && { 'content-length': String(body.length) }),
    ...headers,
  };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  return Buffer.from(`${method} ${url} HTTP/1.1\r\n${lines.join('')}\r\n${body}`, 'latin1');
}

/** The first response in the bytes and its length; undefined while it is incomplete. */
function readAnswer(bytes: Buffer, isHead: boolean): { answer: Answer; length: number } | undefined {
  const end = bytes.indexOf('\r\n\r\n');
  if (end < 0) return undefined;
  const [first = '', ...lines] = bytes.toString('latin1', 0, end).split('\r\n');
  const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(first)?.[1]);
  const headers = Object.fromEntries(
    lines.map((line) => [line.split(':', 1)[0]?.toLowerCase() ?? '', line.replace(/^[^:]*: */, '')]),
  );
  const bodyLength = isHead || status < 200 ? 0 : Number(headers['content-length'] ?? 0);
  const length = end + 4 + bodyLength;
  if (length > bytes.length) return undefined;
  return { answer: { status, headers, body: bytes.toString('utf8', end + 4, length) }, length };
}
