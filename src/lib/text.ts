// Rules for text that is stored: characters, normalisation, length.

/** Characters that XML 1.0 forbids: control characters except tab and line ends, lone surrogates, two non-characters. */
// eslint-disable-next-line no-control-regex -- the expression looks for them
export const forbiddenInXml = /[\x00-\x08\x0B\x0C\x0E-\x1F\uD800-\uDFFF\uFFFE\uFFFF]/u;

/** Stored text may be listed in a SOAP answer. */
export function isXmlText(value: string): boolean {
  return !forbiddenInXml.test(value);
}

/** Longer than any name, and still normalised quickly. */
const maxNormalised = 1024;

/** Normalises to NFC. A text too long for a name is returned unchanged: normalising it would take long, and it is refused anyway. */
export function toNfc(value: string): string {
  return value.length > maxNormalised ? value : value.normalize('NFC');
}

/** Replaces every forbidden character. */
export function toXmlText(value: string): string {
  return value.replaceAll(new RegExp(forbiddenInXml, 'gu'), '\uFFFD');
}

/** The beginning of a text, for a message. */
export function truncate(s: string, most = 64): string {
  return s.length > most ? s.slice(0, most).replace(/[\uD800-\uDBFF]$/, '') : s;
}

export const httpUrlRule = 'an absolute http or https address of at most 2048 characters';

export function isHttpUrl(value: string): boolean {
  return (
    value.length <= 2048 && /^https?:\/\/[^\s/]\S*$/i.test(value) && isXmlText(value) && URL.canParse(value)
  );
}
