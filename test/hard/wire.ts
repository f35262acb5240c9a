// A bare connection to a server: bytes out, and whatever comes back, read as HTTP answers.
import { type Socket, connect } from 'node:net';

export type Answer = { status: number; headers: Record<string, string>; body: string };

export type Wire = {
  readonly socket: Socket;
  /** Sends a request. `isHead`: what comes back has no body, whatever its headers say. */
  readonly write: (bytes: string | Buffer, isHead?: boolean) => void;
  /** How many requests were sent. */
  readonly asked: () => number;
  /** The answers that are complete so far. */
  readonly answers: readonly Answer[];
  /** Resolves with the answer of that number, or undefined when the connection is closed before it is complete. */
  readonly answer: (number?: number) => Promise<Answer | undefined>;
  readonly isClosed: () => boolean;
  /** Resolves when the server has closed the connection, or it broke. */
  readonly closed: Promise<void>;
};

export function openWire(port: number): Wire {
  const answers: Answer[] = [];
  let rest = Buffer.alloc(0);
  let asked = 0;
  let expectsHead = false;
  let isClosed = false;
  let tell: () => void = () => undefined;
  // Half open, so that only the server's closing counts.
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true, noDelay: true });
  const closed = new Promise<void>((resolve) => {
    const close = () => {
      isClosed = true;
      socket.destroy();
      tell();
      resolve();
    };
    socket.on('end', close);
    socket.on('close', close);
    // A connection that is reset while something is still being written has been closed all the same.
    socket.on('error', close);
  });
  socket.on('data', (chunk: Buffer) => {
    rest = Buffer.concat([rest, chunk]);
    for (let found = readAnswer(rest, expectsHead); found; found = readAnswer(rest, expectsHead)) {
      rest = rest.subarray(found.length);
      if (found.answer.status >= 200) answers.push(found.answer);
    }
    tell();
  });
  return {
    socket,
    answers,
    closed,
    asked: () => asked,
    isClosed: () => isClosed,
    write: (bytes, isHead = false) => {
      asked += 1;
      expectsHead = isHead;
      socket.write(bytes);
    },
    answer: async (number = 0) => {
      while (!isClosed && answers.length <= number) await new Promise<void>((resolve) => (tell = resolve));
      return answers[number];
    },
  };
}

/** One request on a connection of its own; none when the server closes it without an answer. */
export async function ask(port: number, bytes: string | Buffer): Promise<Answer | undefined> {
  const wire = openWire(port);
  wire.write(bytes);
  const answer = await wire.answer();
  wire.socket.destroy();
  return answer;
}

/** The bytes of a request. What `headers` says of the length stands, even where it is not true. */
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

/** The first answer in the bytes and how many it takes; undefined while it is not complete. */
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
