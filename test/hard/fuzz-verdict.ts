// Checks that a response to any request is valid: no internal error, and the documented body.
import { XmlDocument } from 'libxml2-wasm';
import { expect } from 'vitest';
import * as z from 'zod';
import type { Answer } from './wire.ts';

const errorBody = z.strictObject({
  status: z.literal('error'),
  error: z.strictObject({ code: z.number().int(), message: z.string().min(1), details: z.array(z.string()) }),
});

const faults = {
  soap11: 'http://schemas.xmlsoap.org/soap/envelope/',
  soap12: 'http://www.w3.org/2003/05/soap-envelope',
};

/** Throws if the response is invalid. `mayRefuse`: the system is read-only, or was a moment ago, so 503 is valid. */
export function judge({ status, headers, body }: Answer, isHead: boolean, mayRefuse: boolean): void {
  const type = headers['content-type'] ?? '';
  expect(status).toBeGreaterThanOrEqual(200);
  if (status === 503) expect(mayRefuse, 'refused as unavailable').toBe(true);
  if (status < 400) {
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
  // The fault repeats a namespace of the request, which may be any text. libxml2 accepts only URIs.
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
    // `Server` and `Receiver` would be internal errors.
    expect(code).toMatch(/^soap:(Client|Sender|MustUnderstand|VersionMismatch)$/);
    const usual = code === 'soap:Sender' ? 400 : 500;
    expect([usual, 405, 413, 415]).toContain(status);
  } finally {
    document.dispose();
  }
}
