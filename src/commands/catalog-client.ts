// A SOAP client of the catalog of any server: its folders and the descriptions of its services.
import { XMLParser } from 'fast-xml-parser';
import { type SoapField, soapElement, soapFields } from '../catalog/catalog.ts';
import { RequestError } from '../lib/request-error.ts';
import { escapeAttribute, escapeText } from '../soap/xml/escape.ts';
import type { Send } from './remote.ts';

const soapNamespace = 'http://schemas.xmlsoap.org/soap/envelope/';
const defaultNamespace = 'http://www.example.com/schemas/Product/10.0';

export type ServiceDescription = Readonly<Record<SoapField, string>>;

export class CatalogClient {
  /** The address that the server gives its clients. */
  readonly ownAddress: string;
  readonly #send: Send;
  readonly #address: URL;
  readonly #namespace: string;
  readonly #token: string | undefined;

  private constructor(
    send: Send,
    address: URL,
    token: string | undefined,
    { namespace, ownAddress }: { namespace: string; ownAddress: string },
  ) {
    this.#send = send;
    this.#address = address;
    this.#token = token;
    this.#namespace = namespace;
    this.ownAddress = ownAddress;
  }

  /** Asks for the WSDL, which names the namespace of requests. The default one is used if there is no WSDL. */
  static async connect(send: Send, given: URL, token: string | undefined): Promise<CatalogClient> {
    const address = new URL(given);
    address.search = '';
    address.hash = '';
    const wsdlAddress = new URL(address);
    wsdlAddress.search = 'wsdl';
    const { status, body } = await send(wsdlAddress, { method: 'GET' });
    const wsdl = status === 200 ? readWsdl(body.toString('utf8')) : undefined;
    return new CatalogClient(send, address, token, {
      namespace: wsdl?.namespace ?? defaultNamespace,
      ownAddress: wsdl?.ownAddress ?? address.href,
    });
  }

  async folders(): Promise<string[]> {
    return entriesOf(elementOf(await this.#call('GetFolders'), 'FolderNames'), 'String').map(textOf);
  }

  /** An empty name is the root. */
  async services(folderName: string): Promise<ServiceDescription[]> {
    const argument = `<FolderName>${escapeText(folderName)}</FolderName>`;
    const list = elementOf(await this.#call('GetServiceDescriptionsEx', argument), 'ServiceDescriptions');
    return entriesOf(list, 'ServiceDescription').map(readDescription);
  }

  async #call(operation: string, content = ''): Promise<Element> {
    const { status, body } = await this.#send(this.#address, {
      method: 'POST',
      headers: {
        'content-type': 'text/xml; charset=utf-8',
        soapaction: '""',
        ...(this.#token !== undefined && { authorization: `Bearer ${this.#token}` }),
      },
      body:
        `<?xml version="1.0" encoding="utf-8"?><soap:Envelope xmlns:soap="${soapNamespace}"><soap:Body>` +
        `<${operation} xmlns="${escapeAttribute(this.#namespace)}">${content}</${operation}></soap:Body></soap:Envelope>`,
    });
    try {
      return readAnswer(body.toString('utf8'), operation);
    } catch (error) {
      const where = `${this.#address.href}: ${operation} (HTTP ${status})`;
      throw new RequestError(`${where}: ${(error as Error).message}`, { cause: error });
    }
  }
}

function readWsdl(text: string): { namespace: string; ownAddress: string | undefined } | undefined {
  try {
    const definitions = elementOf(parse(text), 'definitions');
    const namespace = definitions['@targetNamespace'];
    const port = elementOf(elementOf(definitions, 'service'), 'port');
    const location = elementOf(port, 'address')['@location'];
    return typeof namespace === 'string' && namespace !== ''
      ? { namespace, ownAddress: typeof location === 'string' ? location : undefined }
      : undefined;
  } catch {
    return undefined;
  }
}

/** The element of the answer. Throws the reason of a fault. */
function readAnswer(text: string, operation: string): Element {
  const envelope = elementOf(parse(text), 'Envelope');
  if (envelope.Body === undefined) throw new RequestError('The answer is not a SOAP envelope.');
  const body = elementOf(envelope, 'Body');
  if (body.Fault !== undefined) throw new RequestError(faultText(elementOf(body, 'Fault')));
  const name = `${operation}Response`;
  if (body[name] === undefined) throw new RequestError(`The answer has no ${name}.`);
  return elementOf(body, name);
}

/** The names of SOAP 1.1, or else those of 1.2. */
function faultText(fault: Element): string {
  const reason = textOf(fault.faultstring ?? elementOf(fault, 'Reason').Text).trim();
  const code = textOf(
    elementOf(fault, fault.detail === undefined ? 'Detail' : 'detail', 'Error').Code,
  ).trim();
  const advice = /^49[89]$/.test(code) ? ' Give a valid token in STEWARD_TOKEN or with --token-file.' : '';
  return `The server answered with a fault: ${reason}${advice}`;
}

function readDescription(value: unknown): ServiceDescription {
  const texts = soapFields.map((field) => [field, textOf(asElement(value)[soapElement(field)])]);
  return Object.fromEntries(texts) as ServiceDescription;
}

/** What the parser makes of an element: its children and attributes by name, or only its text. */
type Element = Readonly<Record<string, unknown>>;

const named: Readonly<Record<string, string>> = { lt: '<', gt: '>', amp: '&', quot: '"', apos: "'" };

const parser = new XMLParser({
  removeNSPrefix: true,
  ignoreAttributes: false,
  attributeNamePrefix: '@',
  ignoreDeclaration: true,
  ignorePiTags: true,
  parseTagValue: false,
  parseAttributeValue: false,
  trimValues: false,
  // The parser's own decoder decodes no numeric references.
  entityDecoder: {
    decode: (text) =>
      text.replace(/&(?:#(x?)([0-9a-fA-F]{1,7})|([a-z]{2,4}));/g, (all, x: string, digits, name: string) => {
        const code = Number(`${x === '' ? '' : '0x'}${digits}`);
        return named[name] ?? (code <= 0x10ffff ? String.fromCodePoint(code) : all);
      }),
    setExternalEntities: () => undefined,
    addInputEntities: () => undefined,
    reset: () => undefined,
    setXmlVersion: () => undefined,
  },
});

/** Elements and attributes take the parser much more memory than their text. */
const maxParts = 500_000;

/** The document, which has its root element by name. Throws for text that is no complete XML. */
function parse(text: string): Element {
  // Entities of a document type could expand to any size.
  if (text.includes('<!DOCTYPE'))
    throw new RequestError('The answer has a document type, which is not read.');
  if (countParts(text) > maxParts)
    throw new RequestError(`The answer has more than ${maxParts} elements and attributes.`);
  try {
    const document = parser.parse(text) as Element;
    if (Object.keys(document).some((name) => endsWith(text, name))) return document;
  } catch (error) {
    throw new RequestError(`The answer is not XML: ${(error as Error).message}`, { cause: error });
  }
  throw new RequestError('The answer is not XML, or is not complete.');
}

/** At least as many as the text has: a CDATA section or a text may have parts that look like them. */
function countParts(text: string): number {
  const parts = /<[^/!?]|=["'\s]/g;
  let count = 0;
  while (count <= maxParts && parts.test(text)) count += 1;
  return count;
}

/** The parser reads a document that is cut off as if all elements were closed. */
function endsWith(text: string, name: string): boolean {
  const end = text.lastIndexOf('</');
  if (end < 0) return text.trimEnd().endsWith('/>');
  const tag = text.slice(end + 2, text.indexOf('>', end)).trimEnd();
  return tag.slice(tag.indexOf(':') + 1) === name;
}

/** The first element of the path; an empty one if there is none, or if it has only text. */
function elementOf(from: Element, ...path: readonly string[]): Element {
  return path.reduce((element, name) => asElement(listOf(element, name)[0]), from);
}

function asElement(value: unknown): Element {
  return typeof value === 'object' && value !== null ? (value as Element) : {};
}

/** The parser makes a list of elements only if there are several. */
function listOf(element: Element, name: string): readonly unknown[] {
  const found = element[name];
  return found === undefined ? [] : Array.isArray(found) ? (found as unknown[]) : [found];
}

/** Throws for another element: the list would be incomplete without it. */
function entriesOf(list: Element, name: string): readonly unknown[] {
  const other = Object.keys(list).find((key) => key !== name && !/^[@#]/.test(key));
  if (other !== undefined) throw new RequestError(`The answer has ${other} where only ${name} may be.`);
  return listOf(list, name);
}

/** An element with attributes has its text apart. */
function textOf(value: unknown): string {
  const text = typeof value === 'object' ? asElement(value)['#text'] : value;
  return typeof text === 'string' ? text : '';
}
