// A multipart body → the fields that a route asks for.
import { Busboy, type BusboyFileStream, type BusboyInstance } from '@fastify/busboy';
import type { IncomingHttpHeaders } from 'node:http';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { ServiceError, invalidField, tooLarge } from '../errors.ts';
import { truncate } from '../lib/text.ts';
import type { Runtime } from '../runtime.ts';
import { type Form, type Raw, type RequestedFields, emptyForm, maxParts, maxTextBytes } from './form.ts';

export type MultipartOptions = {
  readonly maxFileBytes: number;
  readonly runtime: Pick<Runtime, 'yieldToEventLoop'>;
};

/** `name` and `filename` are undefined if the part does not give them. */
type Part = {
  readonly name: string | undefined;
  readonly filename: string | undefined;
  readonly contentType: string;
  readonly file: BusboyFileStream;
};

export class MultipartReader {
  readonly #maxFileBytes: number;
  readonly #runtime: MultipartOptions['runtime'];

  constructor({ maxFileBytes, runtime }: MultipartOptions) {
    this.#maxFileBytes = maxFileBytes;
    this.#runtime = runtime;
  }

  async read(headers: IncomingHttpHeaders, body: Readable, requested: RequestedFields): Promise<Form> {
    const form: Record<string, Raw> = {};
    const seen = new Set<string>();
    const reads: Promise<void>[] = [];
    const parser = this.#createParser(headers);
    const refuse = (error: unknown) => void parser.destroy(error as Error);
    // The parser may report an error once more after the pipeline has ended.
    parser.on('error', () => undefined);
    parser.on('partsLimit', () =>
      refuse(tooLarge({ message: `A form must have at most ${maxParts} parts.` })),
    );
    parser.on('file', (name, file, filename, _encoding, contentType) => {
      // The parser reports the same error for the whole body.
      file.on('error', () => undefined);
      file.on('limit', () =>
        refuse(tooLarge({ message: 'A part of the form is larger than a file may be.' })),
      );
      const read = this.#readPart({ name, filename, contentType, file }, requested, seen, form);
      read.catch(refuse);
      reads.push(read);
    });
    const parsing = { isOver: false };
    try {
      await Promise.race([pipeline(body, parser), this.#refuseUnfinished(body, parsing)]);
      await Promise.all(reads);
    } catch (error) {
      if (error instanceof ServiceError) throw error;
      if (body.readableEnded && !body.readableDidRead) return emptyForm;
      throw malformed();
    } finally {
      parsing.isOver = true;
    }
    return form;
  }

  /** Every part is read as bytes, so that text is decoded in one way only. */
  #createParser({ 'content-type': contentType = '' }: IncomingHttpHeaders): BusboyInstance {
    try {
      return new Busboy({
        headers: { 'content-type': contentType },
        isPartAFile: () => true,
        limits: { parts: maxParts, fileSize: Math.max(this.#maxFileBytes, maxTextBytes) },
        // Without this, the parser never ends when it skips the last part and that part fills its buffer.
        fileHwm: 1024 ** 2,
      });
    } catch {
      throw malformed();
    }
  }

  /** Browsers send an empty file part for a control without a file, so it counts as absent. */
  async #readPart(
    { name, filename, contentType, file }: Part,
    requested: RequestedFields,
    seen: Set<string>,
    form: Record<string, Raw>,
  ): Promise<void> {
    if (name !== undefined && seen.has(name)) throw invalidField(truncate(name), 'is given more than once.');
    const kind = name === undefined ? undefined : requested.get(name);
    if (name !== undefined) seen.add(name);
    if (name === undefined || kind === undefined) {
      file.resume();
      return;
    }
    const asFile = filename !== undefined && kind === 'file';
    const bytes = await readBytes(file, name, asFile ? this.#maxFileBytes : maxTextBytes);
    if (bytes.length === 0 && filename !== undefined) return;
    form[name] = asFile ? { filename, contentType, bytes } : decodeUtf8(bytes, name);
  }

  /** Without this, the parser waits forever when the body ends within the headers of a part. */
  async #refuseUnfinished(body: Readable, parsing: { readonly isOver: boolean }): Promise<never> {
    await new Promise((resolve) => body.once('end', resolve));
    for (let turn = 0; !parsing.isOver && turn < turnsToParse; turn += 1)
      await this.#runtime.yieldToEventLoop();
    throw malformed();
  }
}

/** After this many turns of the event loop, the parser has found everything in a body that has arrived. */
const turnsToParse = 20;

async function readBytes(file: BusboyFileStream, name: string, most: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of file as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > most) throw partTooLarge(name, most);
    chunks.push(chunk);
  }
  if (file.truncated) throw partTooLarge(name, most);
  return Buffer.concat(chunks);
}

function decodeUtf8(bytes: Buffer, field: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw invalidField(field, 'must be UTF-8 text.');
  }
}

function partTooLarge(field: string, most: number): ServiceError {
  return tooLarge({ field, message: `must be at most ${most} bytes.` });
}

function malformed(): ServiceError {
  return new ServiceError('invalid', 'The multipart body is malformed.');
}
