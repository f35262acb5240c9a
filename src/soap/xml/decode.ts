// Decodes the bytes of an XML document. The encoding comes from the byte order mark, else from the charset
// parameter of the content type, else from the first bytes and the XML declaration.
import { isAscii } from 'node:buffer';
import { ServiceError } from '../../lib/errors.ts';

type Utf16 = 'utf-16le' | 'utf-16be';
type Encoding = 'utf-8' | 'us-ascii' | Utf16;

/** `utf-16` does not name the byte order. */
const ENCODINGS = new Map<string, Encoding | 'utf-16'>([
  ['utf-8', 'utf-8'],
  ['utf8', 'utf-8'],
  ['us-ascii', 'us-ascii'],
  ['utf-16', 'utf-16'],
  ['utf-16le', 'utf-16le'],
  ['utf-16be', 'utf-16be'],
]);

/** The text between `<?xml` and `?>`, with one blank for each run of white space. The third group is the encoding. */
const DECLARATION =
  /^ version ?= ?(["'])1\.[0-9]+\1(?: encoding ?= ?(["'])([A-Za-z][\w.-]*)\2)?(?: standalone ?= ?(["'])(?:yes|no)\4)? ?$/;

type XmlDeclaration = { readonly encoding: string | undefined; readonly length: number };

/** Undefined if the text does not begin with a valid declaration. */
export function readXmlDeclaration(text: string): XmlDeclaration | undefined {
  const end = text.startsWith('<?xml') ? text.indexOf('?>') : -1;
  if (end < 0) return undefined;
  const content = text.slice(5, end);
  // Most declarations have single blanks already.
  const isPlain = !/[\t\r\n]| {2}/.test(content);
  const found = DECLARATION.exec(isPlain ? content : content.replaceAll(/[ \t\r\n]+/g, ' '));
  return found ? { encoding: found[3], length: end + 2 } : undefined;
}

export function decodeXml(bytes: Buffer, charset: string | undefined): string {
  const [first, second, third] = [bytes[0], bytes[1], bytes[2]];
  if (first === 0xef && second === 0xbb && third === 0xbf) return decodeAs('utf-8', bytes.subarray(3));
  if (first === 0xff && second === 0xfe) return decodeAs('utf-16le', bytes.subarray(2));
  if (first === 0xfe && second === 0xff) return decodeAs('utf-16be', bytes.subarray(2));
  const sniffed =
    first === 0x3c && second === 0 ? 'utf-16le' : first === 0 && second === 0x3c ? 'utf-16be' : undefined;
  if (charset !== undefined) return decodeAs(findEncoding(charset, sniffed), bytes);
  return sniffed === undefined ? decodeBytewise(bytes) : decodeUtf16(bytes, sniffed);
}

function decodeBytewise(bytes: Buffer): string {
  const isDeclared = bytes.toString('latin1', 0, 5) === '<?xml';
  const start = isDeclared ? bytes.toString('latin1', 0, bytes.indexOf('>') + 1) : '';
  const declared = readXmlDeclaration(start)?.encoding;
  const encoding = findEncoding(declared ?? 'utf-8', undefined);
  if (encoding === 'utf-8' || encoding === 'us-ascii') return decodeAs(encoding, bytes);
  throw refuseDeclared(declared);
}

function decodeUtf16(bytes: Buffer, sniffed: Utf16): string {
  const text = decodeAs(sniffed, bytes);
  const declared = readXmlDeclaration(text)?.encoding;
  if (declared === undefined || findEncoding(declared, sniffed) === sniffed) return text;
  throw refuseDeclared(declared);
}

function findEncoding(name: string, sniffed: Utf16 | undefined): Encoding {
  const encoding = ENCODINGS.get(name.toLowerCase());
  if (encoding === 'utf-16') return sniffed ?? 'utf-16be';
  if (encoding !== undefined) return encoding;
  const message = `The encoding "${name.slice(0, 64)}" is not supported: send UTF-8 or UTF-16.`;
  throw new ServiceError('invalid', message);
}

function decodeAs(encoding: Encoding, bytes: Buffer): string {
  // Most messages are ASCII, which needs no decoder and is valid UTF-8.
  if ((encoding === 'us-ascii' || encoding === 'utf-8') && isAscii(bytes)) return bytes.toString('latin1');
  try {
    if (encoding !== 'us-ascii')
      return new TextDecoder(encoding, { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    // Invalid bytes are refused below.
  }
  throw new ServiceError('invalid', `The message is not valid ${encoding.toUpperCase()}.`);
}

function refuseDeclared(name: string | undefined): ServiceError {
  return new ServiceError('invalid', `The XML declaration says ${name}, but the message is not encoded so.`);
}
