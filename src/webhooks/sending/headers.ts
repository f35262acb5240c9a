// The headers of webhook requests that an administrator adds: which are allowed, and how they are shown.
import { maskedValue } from '../../lib/audit-fields.ts';

export type CustomHeader = { readonly name: string; readonly value: string };

const maxHeaders = 16;
const maxNameLength = 128;
export const maxValueLength = 1024;

const token = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
/** A blank at either end is refused, because receivers drop it. */
const printable = /^[!-~](?:[ -~]*[!-~])?$/;

/** Steward or its HTTP client sets these, or they belong to one connection. */
const reserved =
  /^(?:host|content-.*|webhook-.*|user-agent|expect|proxy-.*|connection|keep-alive|te|trailers?|transfer-encoding|upgrade|http2-settings)$/i;

/** Completes "must be …". */
export const headerNameRule = `an HTTP token of at most ${maxNameLength} characters that is not reserved: host, content-*, webhook-*, user-agent, expect, proxy-* and headers of the connection are`;

export function isHeaderName(name: string): boolean {
  return token.test(name) && name.length <= maxNameLength && !reserved.test(name);
}

export function isSameHeader(one: string, other: string | undefined): boolean {
  return one.toLowerCase() === other?.toLowerCase();
}

export type HeadersResult =
  { readonly headers: readonly CustomHeader[] } | { readonly problems: readonly string[] };

/** `legacyHeader` is the name that LEGACY_SIGNATURE_HEADER reserves. The problems quote no value. */
export function readHeaders(
  given: Readonly<Record<string, unknown>>,
  legacyHeader: string | undefined,
): HeadersResult {
  const names = Object.keys(given);
  if (names.length > maxHeaders) return { problems: [`must have at most ${maxHeaders} entries.`] };
  const problems: string[] = [];
  const headers: CustomHeader[] = [];
  for (const [index, name] of names.entries()) {
    const value = given[name];
    const shown = JSON.stringify(name.slice(0, maxNameLength));
    if (!isHeaderName(name)) problems.push(`the name ${shown} must be ${headerNameRule}.`);
    else if (isSameHeader(name, legacyHeader))
      problems.push(`the name ${shown} is reserved: LEGACY_SIGNATURE_HEADER uses it.`);
    if (names.slice(0, index).some((other) => isSameHeader(other, name)))
      problems.push(`the name ${shown} must not be repeated in other case.`);
    if (typeof value === 'string' && value.length <= maxValueLength && printable.test(value))
      headers.push({ name, value });
    else
      problems.push(
        `the value of ${shown} must be a text of 1 to ${maxValueLength} printable ASCII characters without a blank at either end.`,
      );
  }
  return problems.length > 0 ? { problems } : { headers };
}

/** Replaces each masked value with the stored one. */
export function keepMasked(given: readonly CustomHeader[], stored: readonly CustomHeader[]): HeadersResult {
  const problems: string[] = [];
  const headers = given.map(({ name, value }) => {
    if (value !== maskedValue) return { name, value };
    const kept = stored.find((other) => isSameHeader(other.name, name));
    if (!kept) problems.push(`the value ${maskedValue} keeps a stored one, but ${name} has none.`);
    return { name, value: kept?.value ?? value };
  });
  return problems.length > 0 ? { problems } : { headers };
}

/** The headers as answers show them. */
export function maskHeaders(headers: readonly CustomHeader[]): Readonly<Record<string, typeof maskedValue>> {
  return Object.fromEntries(headers.map(({ name }) => [name, maskedValue]));
}

/** A shorter value may be a part of any text. */
const minMaskedLength = 8;

/** Hides the values where a receiver returns them. The longest goes first, because it may contain another one. */
export function maskValues(text: string, headers: readonly CustomHeader[]): string {
  return headers
    .map(({ value }) => value)
    .filter((value) => value.length >= minMaskedLength)
    .sort((a, b) => b.length - a.length)
    .reduce((masked, value) => masked.replaceAll(value, maskedValue), text);
}

const maxResponseBytes = 4096;
const secretName = /^set-cookie2?$/i;

/**
 * Headers of a response as an attempt keeps them: an object of at most 4 KiB as JSON. Headers that do not fit are
 * left out.
 */
export function keepResponseHeaders(
  received: Readonly<Record<string, string | readonly string[] | undefined>>,
  sent: readonly CustomHeader[],
): Readonly<Record<string, string>> {
  const kept: Record<string, string> = {};
  let bytes = 2;
  for (const [name, value = ''] of Object.entries(received)) {
    const isSecret = secretName.test(name) || sent.some((header) => isSameHeader(header.name, name));
    const text = typeof value === 'string' ? value : value.join(', ');
    const shown = isSecret ? maskedValue : maskValues(text, sent);
    const added = bytesAsJson(name) + bytesAsJson(shown) + 2;
    if (bytes + added > maxResponseBytes) continue;
    bytes += added;
    kept[name] = shown;
  }
  return kept;
}

function bytesAsJson(text: string): number {
  return Buffer.byteLength(JSON.stringify(text));
}
