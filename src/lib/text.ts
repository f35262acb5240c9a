// What text may be taken in and kept, whatever it is for.

/** What XML 1.0 cannot carry: control characters but tab and line ends, lone surrogates, two non-characters. */
// eslint-disable-next-line no-control-regex -- they are what is looked for
export const forbiddenInXml = /[\x00-\x08\x0B\x0C\x0E-\x1F\uD800-\uDFFF\uFFFE\uFFFF]/u;

/** What is kept here may be listed in a SOAP answer. */
export function isXmlText(value: string): boolean {
  return !forbiddenInXml.test(value);
}

/** Much longer than anything that has a name, and soon brought into order. */
const mostToCompose = 1024;

/** In the one form that letters with marks are kept in (NFC). What is too long to be a name stays as it is: it takes long, and is refused. */
export function toNfc(value: string): string {
  return value.length > mostToCompose ? value : value.normalize('NFC');
}

/** With a mark in the place of whatever cannot be kept. */
export function toXmlText(value: string): string {
  return value.replaceAll(new RegExp(forbiddenInXml, 'gu'), '\uFFFD');
}

/** As much of it as a message needs. */
export function truncate(s: string, most = 64): string {
  return s.length > most ? s.slice(0, most).replace(/[\uD800-\uDBFF]$/, '') : s;
}

export const httpUrlRule = 'an absolute http or https address of at most 2048 characters';

export function isHttpUrl(value: string): boolean {
  return (
    value.length <= 2048 && /^https?:\/\/[^\s/]\S*$/i.test(value) && isXmlText(value) && URL.canParse(value)
  );
}
