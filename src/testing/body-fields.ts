// Replaces the values of fields in a text that a client or the server has sent: a form, JSON, XML or a page. Every
// caller can send a body, so the work is linear in the length of the text.

/** Returns the value to show. */
type Replace = (name: string, value: string) => string;

/**
 * The form of the body is recognized by its content, because clients may send a wrong content type. It may be cut at
 * its end.
 */
export function replaceInBody(body: string, replace: Replace): string {
  if (body.startsWith('--')) return replaceInParts(body, replace);
  const isForm = /^[^\s=<>{}"]+=/.test(body);
  return isForm ? replaceInPairs(body, replace) : replaceInText(body, replace);
}

/** Pairs of a query or a form. */
export function replaceInPairs(text: string, replace: Replace): string {
  const pairs = text.split('&').map((pair) => {
    const [name = ''] = pair.split('=', 1);
    const value = decode(pair.slice(name.length + 1));
    const shown = value === '' ? '' : replaceInText(replace(decode(name), value), replace);
    return shown === value ? pair : `${name}=${encodeURIComponent(shown)}`;
  });
  return pairs.join('&');
}

/** RFC 2046 allows 70 characters after two hyphens. */
const maxDelimiterLength = 72;

/** Parts of a multipart form. */
function replaceInParts(text: string, replace: Replace): string {
  const [delimiter = ''] = text.slice(0, maxDelimiterLength).split(/\r?\n/, 1);
  const parts = text.split(`\n${delimiter}`).map((part) => {
    const gap = /\r?\n\r?\n/.exec(part);
    const head = gap ? part.slice(0, gap.index + gap[0].length) : '';
    const name = /\bname="?([^";\r\n]+)/i.exec(head)?.[1] ?? '';
    const value = part.slice(head.length).replace(/\r$/, '');
    const end = part.slice(head.length + value.length);
    return value === '' ? part : `${head}${replaceInText(replace(name, value), replace)}${end}`;
  });
  return parts.join(`\n${delimiter}`);
}

function replaceInText(text: string, replace: Replace): string {
  return replaceInMarkup(replaceInJson(text, replace), replace);
}

/** Pairs of JSON, anywhere in a text: a name, a colon, and a value, a list of values, or headers. */
function replaceInJson(text: string, replace: Replace): string {
  const pieces = splitAtQuotes(text);
  for (let at = 1; at < pieces.length - 1; at += 1) {
    const sign = pieces[at]?.trim() ?? '';
    if (!sign.startsWith(':')) continue;
    const name = unescapeJson(pieces[at - 1] ?? '');
    // A value may be JSON again, or XML.
    const show = (value: string) => replaceInText(replace(name, value), replace);
    if (/^:\s*[[{]/.test(sign) && /headers$/i.test(name)) at = replaceHeaders(pieces, at, show);
    else if (/^:\s*\[?$/.test(sign)) {
      replacePiece(pieces, (at += 1), show);
      while (sign !== ':' && pieces[at + 1]?.trim() === ',') replacePiece(pieces, (at += 2), show);
    }
  }
  return pieces.join('"');
}

/** Replaces the texts in the brackets that open here, except names. Returns where the brackets close. */
function replaceHeaders(pieces: string[], start: number, show: (value: string) => string): number {
  let depth = 0;
  let name = '';
  for (let at = start; at < pieces.length - 1; at += 2) {
    for (const sign of pieces[at] ?? '') {
      if (sign === '{' || sign === '[') depth += 1;
      if ((sign === '}' || sign === ']') && (depth -= 1) === 0) return at;
    }
    if (pieces[at + 2]?.trimStart().startsWith(':')) name = pieces[at + 1] ?? '';
    else if (name !== 'name') replacePiece(pieces, at + 1, show);
  }
  return pieces.length;
}

/** Replaces a piece of JSON if its text changes. */
function replacePiece(pieces: string[], at: number, show: (value: string) => string): void {
  const value = unescapeJson(pieces[at] ?? '');
  const shown = show(value);
  if (shown !== value) pieces[at] = JSON.stringify(shown).slice(1, -1);
}

/** The pieces between quotes. An escaped quote is part of a piece. */
function splitAtQuotes(text: string): string[] {
  const pieces: string[] = [];
  let isEscaped = false;
  for (const piece of text.split('"')) {
    pieces.push(isEscaped ? `${pieces.pop()}"${piece}` : piece);
    let end = piece.length;
    while (piece[end - 1] === '\\') end -= 1;
    isEscaped = (piece.length - end) % 2 === 1;
  }
  return pieces;
}

/** The text may be cut, even within an escape sequence. */
function unescapeJson(text: string): string {
  try {
    return JSON.parse(`"${text}"`) as string;
  } catch {
    return text.replace(/\\(.)/gs, '$1');
  }
}

const dataStart = '<![CDATA[';

/** Texts and attributes of XML, inputs of pages, and the terms of their lists. */
function replaceInMarkup(text: string, replace: Replace, isData = false): string {
  let result = '';
  let term = '';
  /** The field whose text follows. */
  let field = '';
  for (let at = 0, end; at < text.length; at = end) {
    if (text.startsWith(dataStart, at) && !isData) {
      const close = indexOf(text, ']]>', at);
      end = close + 3;
      const data = text.slice(at + dataStart.length, close);
      const inner = replace(field, data);
      result +=
        inner === data ? dataStart + replaceInMarkup(data, replace, true) + text.slice(close, end) : inner;
      continue;
    }
    end = indexOf(text, '<', at + 1);
    const [tag = ''] = /^<(?:[^>"']|"[^"]*"?|'[^']*'?)*>?/.exec(text.slice(at, end)) ?? [];
    const element = /^<(?!!)([^\s/>]*)/.exec(tag)?.[1]?.toLowerCase();
    const input = /\sname="([^"]*)/i.exec(tag)?.[1];
    const content = text.slice(at + tag.length, end);
    const value = content.trim();
    if (element === 'dt') term = value;
    if (element !== undefined)
      field = element === 'dd' ? term : element === 'textarea' ? (input ?? '') : element;
    const shown = value === '' ? '' : replace(field, value);
    result += replaceInTag(tag, replace, input) + (shown === value ? content : shown);
  }
  return result;
}

/** The value of an input belongs to the field that its name gives. */
function replaceInTag(tag: string, replace: Replace, input = 'value'): string {
  const attribute = /([^\s=<>"']+)(?:\s*=\s*("[^"]*"?|'[^']*'?))?/g;
  return tag.replace(attribute, (pair: string, name: string, quoted: string | undefined) => {
    const value = quoted?.slice(1, -1) ?? '';
    const shown = value === '' ? '' : replace(name === 'value' ? input : name, value);
    return shown === value ? pair : `${name}="${shown}"`;
  });
}

/** The end of the text if the mark is missing. */
function indexOf(text: string, mark: string, from: number): number {
  const at = text.indexOf(mark, from);
  return at < 0 ? text.length : at;
}

function decode(text: string): string {
  const spaced = text.replaceAll('+', ' ');
  try {
    return decodeURIComponent(spaced);
  } catch {
    return spaced;
  }
}
