// What text may be taken in and kept, whatever it is for.

/** Only characters that XML 1.0 can carry: what is kept here may be listed in a SOAP answer. */
export function isXmlText(value: string): boolean {
  // eslint-disable-next-line no-control-regex -- they are what is looked for
  return !/[\x00-\x08\x0B\x0C\x0E-\x1F\uFFFE\uFFFF]|\p{Surrogate}/u.test(value);
}

export const httpUrlRule = 'an absolute http or https address of at most 2048 characters';

export function isHttpUrl(value: string): boolean {
  return (
    value.length <= 2048 && /^https?:\/\/[^\s/]\S*$/i.test(value) && isXmlText(value) && URL.canParse(value)
  );
}
