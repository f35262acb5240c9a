// What the SOAP kit reads off an HTTP request: media type and bytes.
import type { IncomingMessage } from 'node:http';
import { gunzipSync } from 'node:zlib';
import { ServiceError } from '../errors.ts';
import type { SoapVersion } from './envelope.ts';

const maxRequestBytes = 16 * 1024;

const mediaTypes = ['text/xml', 'application/xml', 'application/soap+xml'];

/** What a content type says of the message. */
type Told = {
  readonly isAccepted: boolean;
  readonly version: SoapVersion;
  readonly charset: string | undefined;
};

const nothingTold: Told = { isAccepted: true, version: '1.1', charset: undefined };

/** Clients send the same few again and again. */
const known = new Map<string, Told>();
const mostKnown = 64;

function readContentType({ headers }: IncomingMessage): Told {
  const given = headers['content-type'];
  if (given === undefined) return nothingTold;
  const found = known.get(given);
  if (found) return found;
  const type = given.split(';', 1)[0]?.trim().toLowerCase() ?? '';
  const told: Told = {
    isAccepted: mediaTypes.includes(type),
    version: type.startsWith('application/soap+xml') ? '1.2' : '1.1',
    charset: /;\s*charset\s*=\s*"?([^";\s]+)/i.exec(given)?.[1],
  };
  if (known.size < mostKnown) known.set(given, told);
  return told;
}

export function refuseMediaType(request: IncomingMessage): void {
  if (!readContentType(request).isAccepted) {
    throw new ServiceError(
      'unsupported-media-type',
      `The content type must be one of ${mediaTypes.join(', ')}.`,
    );
  }
  const coding = request.headers['content-encoding']?.trim().toLowerCase();
  if (coding !== undefined && !['identity', 'gzip', 'x-gzip'].includes(coding)) {
    throw new ServiceError('unsupported-media-type', 'The content encoding must be gzip or identity.');
  }
}

/** Calls back once: with the whole body, or with why it is refused where there is more of it than may be. */
export function readBody(request: IncomingMessage, done: (body: Buffer | ServiceError) => unknown): void {
  if (Number(request.headers['content-length']) > maxRequestBytes) return void done(tooLarge());
  const chunks: Buffer[] = [];
  let size = 0;
  let isOver = false;
  function end(refusal?: ServiceError): void {
    if (isOver) return;
    isOver = true;
    done(refusal ?? (chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks)));
  }
  request.on('data', (chunk: Buffer) => {
    // What follows is let go by.
    if (isOver) return;
    chunks.push(chunk);
    size += chunk.length;
    if (size > maxRequestBytes) end(tooLarge());
  });
  request.on('end', end);
  request.on('error', () => end(new ServiceError('invalid', 'The request cannot be read.')));
}

export function bytesOf(request: IncomingMessage, body: Buffer): Buffer {
  if (body.length === 0) throw new ServiceError('invalid', 'The request has no body: send a SOAP Envelope.');
  const coding = request.headers['content-encoding'];
  if (coding === undefined || !/gzip/i.test(coding)) return body;
  try {
    return gunzipSync(body, { maxOutputLength: maxRequestBytes });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE') throw tooLarge();
    throw new ServiceError('invalid', 'The body is not valid gzip data.');
  }
}

function tooLarge(): ServiceError {
  return new ServiceError('too-large', `A request must be at most ${maxRequestBytes} bytes.`);
}

/** Before the envelope has been read, the content type tells which form an answer should have. */
export function guessVersion(request: IncomingMessage): SoapVersion {
  return readContentType(request).version;
}

export function charsetOf(request: IncomingMessage): string | undefined {
  return readContentType(request).charset;
}
