// What text may be taken in and kept, whatever it is for.

/** What XML 1.0 cannot carry: control characters but tab and line ends, lone surrogates, two non-characters. */
// eslint-disable-next-line no-control-regex -- they are what is looked for
export const forbiddenInXml = /[\x00-\x08\x0B\x0C\x0E-\x1F\uD800-\uDFFF\uFFFE\uFFFF]/u;

/** What is kept here may be listed in a SOAP answer. */
export function isXmlText(value: string): boolean {
  return !forbiddenInXml.test(value);
}

/** With a mark in the place of whatever cannot be kept. */
export function asXmlText(value: string): string {
  return value.replaceAll(new RegExp(forbiddenInXml, 'gu'), '\uFFFD');
}

export const httpUrlRule = 'an absolute http or https address of at most 2048 characters';

export function isHttpUrl(value: string): boolean {
  return (
    value.length <= 2048 && /^https?:\/\/[^\s/]\S*$/i.test(value) && isXmlText(value) && URL.canParse(value)
  );
}
