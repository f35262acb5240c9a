// A position in an XML text, and readers of the smallest parts: names, white space, references.
import { ServiceError } from '../../lib/errors.ts';
import { truncate, isXmlText } from '../../lib/text.ts';

export type Cursor = {
  readonly text: string;
  at: number;
  /** The elements that are not closed yet, the innermost last. */
  readonly open: readonly { readonly tag: string }[];
};

const NAME_START =
  'A-Z_a-z\\xC0-\\xD6\\xD8-\\xF6\\xF8-\\u02FF\\u0370-\\u037D\\u037F-\\u1FFF\\u200C-\\u200D\\u2070-\\u218F' +
  '\\u2C00-\\u2FEF\\u3001-\\uD7FF\\uF900-\\uFDCF\\uFDF0-\\uFFFD\\u{10000}-\\u{EFFFF}';
const NC_NAME = `[${NAME_START}][\\u0300-\\u036F${NAME_START}\\-.0-9\\xB7\\u203F\\u2040]*`;
const NAME = new RegExp(`${NC_NAME}(?::${NC_NAME})?`, 'uy');
const REFERENCE = /&(?:#(?:x([0-9A-Fa-f]+)|([0-9]+))|(amp|lt|gt|quot|apos));/y;
const ENTITIES = new Map(Object.entries({ amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" }));

export function readName(cursor: Cursor): string {
  const { text, at: start } = cursor;
  NAME.lastIndex = start;
  const end = NAME.test(text) ? NAME.lastIndex : start;
  if (end === start || text[end] === ':') {
    const found = /^[^\s<>/="']*/.exec(text.slice(start, start + 100))?.[0];
    refuse(cursor, found ? `"${truncate(found)}" is not a valid name` : 'A name is missing in a tag');
  }
  cursor.at = end;
  return text.slice(start, end);
}

export function skipWhiteSpace(cursor: Cursor): boolean {
  const { text, at: start } = cursor;
  let at = start;
  for (let c = text.charCodeAt(at); c === 0x20 || c === 0x0a || c === 0x09; c = text.charCodeAt(at)) at++;
  cursor.at = at;
  return at > start;
}

export function expandReferences(cursor: Cursor, raw: string, start: number): string {
  let expanded = '';
  let from = 0;
  for (let at = raw.indexOf('&'); at >= 0; at = raw.indexOf('&', from)) {
    REFERENCE.lastIndex = at;
    const [all, hexadecimal, decimal, entity] = REFERENCE.exec(raw) ?? [];
    if (all === undefined) {
      const found = /^&[^\s&;]+;/.exec(raw.slice(at, at + 100))?.[0];
      const what = found ? `The reference ${truncate(found)} is not known` : 'An "&" must be written "&amp;"';
      refuse(cursor, what, start + at);
    }
    const code = hexadecimal === undefined ? Number(decimal) : Number.parseInt(hexadecimal, 16);
    const character = ENTITIES.get(entity ?? '') ?? (code <= 0x10ffff ? String.fromCodePoint(code) : '\0');
    if (!isXmlText(character))
      refuse(cursor, `The reference ${truncate(all)} is to no character of XML`, start + at);
    expanded += raw.slice(from, at) + character;
    from = at + all.length;
  }
  return from === 0 ? raw : expanded + raw.slice(from);
}

export function refuse(cursor: Cursor, what: string, at = cursor.at): never {
  const tag = cursor.open.at(-1)?.tag;
  throw new ServiceError('invalid', `${what} (line ${cursor.text.slice(0, at).split('\n').length}).`, {
    element: tag === undefined ? undefined : truncate(tag),
  });
}
