// What is expected of every answer, whatever was asked: no fault of ours, the contract's shape, and little work.
import { readFileSync } from 'node:fs';
import { XmlDocument } from 'libxml2-wasm';
import { expect } from 'vitest';
import { z } from 'zod';
import type { Answer } from './wire.ts';

const errorBody = z.strictObject({
  status: z.literal('error'),
  error: z.strictObject({ code: z.number().int(), message: z.string().min(1), details: z.array(z.string()) }),
});

const faults = {
  soap11: 'http://schemas.xmlsoap.org/soap/envelope/',
  soap12: 'http://www.w3.org/2003/05/soap-envelope',
};

/** Throws what is wrong with an answer. `mayRefuse`: the system is read-only, or was a moment ago. */
export function judge({ status, headers, body }: Answer, isHead: boolean, mayRefuse: boolean): void {
  const type = headers['content-type'] ?? '';
  expect(status).toBeGreaterThanOrEqual(200);
  if (status === 503) expect(mayRefuse, 'refused as unavailable').toBe(true);
  if (status < 400) {
    // Programs may get any status but an error in a good answer only where ERROR_STATUS says so.
    if (type.startsWith('application/json') && !isHead) JSON.parse(body);
    if (/^(text|application\/soap\+)\/?xml/.test(type) && !isHead) XmlDocument.fromString(body).dispose();
    return;
  }
  if (isHead) expect(status).not.toBe(500);
  else if (/^(text\/xml|application\/soap\+xml)/.test(type)) judgeFault(status, type, body);
  else {
    expect(status, body).not.toBe(500);
    if (type.startsWith('text/html')) expect(body).toMatch(/^<!doctype html>/);
    else errorBody.parse(JSON.parse(body));
  }
}

function judgeFault(status: number, type: string, body: string): void {
  // libxml2 takes a namespace for a URI; one that was sent may be any text, and is named as it was.
  const document = XmlDocument.fromString(body.replaceAll(/xmlns:h="[^"]*"/g, 'xmlns:h="urn:h"'));
  try {
    const version = type.startsWith('text/xml') ? 'soap11' : 'soap12';
    const uri = faults[version];
    const code = document.get(
      version === 'soap11'
        ? '/s:Envelope/s:Body/s:Fault/faultcode'
        : '/s:Envelope/s:Body/s:Fault/s:Code/s:Value',
      { s: uri },
    )?.content;
    // `Server` and `Receiver` would be a fault of ours.
    expect(code).toMatch(/^soap:(Client|Sender|MustUnderstand|VersionMismatch)$/);
    const usual = code === 'soap:Sender' ? 400 : 500;
    expect([usual, 405, 413, 415]).toContain(status);
  } finally {
    document.dispose();
  }
}

/** In milliseconds, of this thread alone where the system tells: other tests run in other threads of the process. */
export function cpuMs(): number {
  try {
    return Number(readFileSync('/proc/thread-self/schedstat', 'utf8').split(' ', 1)[0]) / 1e6;
  } catch {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1000;
  }
}
