// Rules for text that is stored: characters, normalisation, length.

// oxlint-disable-next-line no-control-regex -- the expression looks for them
export const forbiddenInXml = /[\x00-\x08\x0B\x0C\x0E-\x1F\uD800-\uDFFF\uFFFE\uFFFF]/u;

/** A SOAP answer may contain any stored text. */
export function isXmlText(value: string): boolean {
  return !forbiddenInXml.test(value);
}

const maxNormalised = 1024;

/** Normalising a long text takes long, and a text too long for a name is refused anyway. */
export function toNfc(value: string): string {
  return value.length > maxNormalised ? value : value.normalize('NFC');
}

export function toXmlText(value: string): string {
  return value.replaceAll(new RegExp(forbiddenInXml, 'gu'), '\uFFFD');
}

export function truncate(s: string, most = 64): string {
  return s.length > most ? s.slice(0, most).replace(/[\uD800-\uDBFF]$/, '') : s;
}

export const httpUrlRule = 'an absolute http or https address of at most 2048 characters';

export function isHttpUrl(value: string): boolean {
  return (
    value.length <= 2048 && /^https?:\/\/[^\s/]\S*$/i.test(value) && isXmlText(value) && URL.canParse(value)
  );
}
