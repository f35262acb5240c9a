// What a SOAP message says: the operation of a request, and the reason of a fault.
import { constants, gunzipSync } from 'node:zlib';
import { decodeXml } from '../soap/xml/decode.ts';
import { type XmlElement, readXml } from '../soap/xml/reader.ts';

const maxBytes = 1024 ** 2;

/** The name of the first element in the Body, even if the server refuses the message. */
export function soapOperationOf(body: Buffer): string | undefined {
  const root = readMessage(body);
  const soapBody = root?.children.find(({ name }) => name === 'Body');
  return soapBody?.children[0]?.name;
}

/** The text that a fault has for people. */
export function faultReasonOf(body: Buffer): string | undefined {
  const root = readMessage(body);
  return root && (findElement(root, 'faultstring') ?? findElement(root, 'Text'))?.text;
}

/** Shows a compressed body as text too, or its beginning: the journal keeps only the first bytes of a large one. */
export function decompress(body: Buffer): Buffer {
  if (body[0] !== 0x1f || body[1] !== 0x8b) return body;
  const options = { finishFlush: constants.Z_SYNC_FLUSH, maxOutputLength: maxBytes };
  for (let length = body.length; length > 0; length >>= 1) {
    try {
      return gunzipSync(body.subarray(0, length), options);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ERR_BUFFER_TOO_LARGE') return body;
    }
  }
  return body;
}

function readMessage(body: Buffer): XmlElement | undefined {
  try {
    return readXml(decodeXml(decompress(body), undefined));
  } catch {
    return undefined;
  }
}

function findElement(element: XmlElement, name: string): XmlElement | undefined {
  if (element.name === name) return element;
  for (const child of element.children) {
    const found = findElement(child, name);
    if (found) return found;
  }
  return undefined;
}
