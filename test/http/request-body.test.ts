// The stream that the parsers read: the bytes of the source in large buffers, its errors, and its end.
import { PassThrough, Readable } from 'node:stream';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { countBody } from '../../src/http/counted-body.ts';
import { ServiceError } from '../../src/lib/errors.ts';

function bodyOf(source: Readable, isChunked = true) {
  const counted: number[] = [];
  const body = countBody(source, {
    isChunked,
    onBytes: (count) => {
      counted.push(count);
      return undefined;
    },
  });
  return { body, counted };
}

async function read(body: Readable): Promise<Buffer[]> {
  const buffers: Buffer[] = [];
  for await (const buffer of body as AsyncIterable<Buffer>) buffers.push(buffer);
  return buffers;
}

const cut = (bytes: Buffer, size: number) =>
  Readable.from(
    Array.from({ length: Math.ceil(bytes.length / size) }, (_, index) =>
      bytes.subarray(index * size, (index + 1) * size),
    ),
  );

/** Bytes that differ from their neighbours. */
const bytesOf = (length: number) => Buffer.from(Array.from({ length }, (_, index) => index % 251));

describe('a request body', () => {
  it.each([1, 64, 1000, 40_000, 65_536, 100_000])(
    'consists of few buffers: chunks of %d bytes',
    async (size) => {
      const bytes = bytesOf(200_000);
      const { body, counted } = bodyOf(cut(bytes, size), false);
      const buffers = await read(body);
      expect(Buffer.concat(buffers).equals(bytes)).toBe(true);
      expect(buffers.length).toBeLessThanOrEqual(5);
      expect(counted.reduce((sum, count) => sum + count, 0)).toBe(bytes.length);
    },
  );

  it('is refused for tiny chunks only if they are those of the transfer coding', async () => {
    const bytes = bytesOf(70_000);
    await expect(read(bodyOf(cut(bytes, 1)).body)).rejects.toThrow('The request body cannot be read.');
    expect(Buffer.concat(await read(bodyOf(cut(bytes, 1), false).body))).toEqual(bytes);
    expect(Buffer.concat(await read(bodyOf(cut(bytes, 64)).body))).toEqual(bytes);
    await expect(read(bodyOf(cut(bytesOf(65_536), 1)).body)).resolves.toHaveLength(1);
  });

  it('is refused when it is counted', async () => {
    const error = new ServiceError('unavailable', 'Too many.');
    const body = countBody(cut(bytesOf(10), 5), { isChunked: false, onBytes: () => error });
    await expect(read(body)).rejects.toBe(error);
  });

  it('discards the rest of its source after an error', async () => {
    const source = new PassThrough();
    const { body } = bodyOf(source);
    body.resume();
    source.write('x');
    await nextTurn();
    body.destroy(new Error('refused'));
    source.end(Buffer.alloc(1_000_000));
    await new Promise((resolve) => source.once('end', resolve));
  });

  it('fails if its source breaks off, with or without an error', async () => {
    for (const error of [new Error('reset'), undefined]) {
      const source = new PassThrough();
      const { body } = bodyOf(source);
      const reading = read(body);
      source.write('x');
      await nextTurn();
      source.destroy(error);
      await expect(reading).rejects.toThrow(error?.message ?? 'The request was aborted.');
    }
  });

  it('waits while its reader does', async () => {
    const source = cut(bytesOf(2_000_000), 50_000);
    const { body } = bodyOf(source, false);
    body.once('readable', () => undefined);
    await nextTurn();
    await nextTurn();
    expect(body.readableLength).toBeLessThan(200_000);
    expect(Buffer.concat(await read(body))).toHaveLength(2_000_000);
  });
});
