// A SOAP client of the catalog of any server: its folders and the descriptions of its services.
import { XMLParser } from 'fast-xml-parser';
import { RequestError } from '../lib/request-error.ts';
import { escapeAttribute, escapeText } from '../soap/xml/escape.ts';
import type { Send } from './remote.ts';

const soapNamespace = 'http://schemas.xmlsoap.org/soap/envelope/';
const defaultNamespace = 'http://www.example.com/schemas/Product/10.0';

export type ServiceDescription = {
  readonly name: string;
  readonly type: string;
  readonly url: string;
  readonly parentType: string;
  readonly capabilities: string;
  readonly description: string;
};

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
    const names = child(await this.#call('GetFolders'), 'FolderNames');
    return (names?.children ?? []).map(({ text }) => text);
  }

  /** An empty name is the root. */
  async services(folderName: string): Promise<ServiceDescription[]> {
    const argument = `<FolderName>${escapeText(folderName)}</FolderName>`;
    const list = child(await this.#call('GetServiceDescriptionsEx', argument), 'ServiceDescriptions');
    return (list?.children ?? []).map(readDescription);
  }

  async #call(operation: string, content = ''): Promise<AnswerElement> {
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
    const root = readAnswerXml(text);
    const namespace = root.name === 'definitions' ? root.attributes.targetNamespace : undefined;
    const port = find(root, 'port');
    return namespace
      ? { namespace, ownAddress: port && child(port, 'address')?.attributes.location }
      : undefined;
  } catch {
    return undefined;
  }
}

/** The element of the answer. Throws the reason of a fault. */
function readAnswer(text: string, operation: string): AnswerElement {
  const envelope = readAnswerXml(text);
  const body = envelope.name === 'Envelope' ? child(envelope, 'Body') : undefined;
  if (!body) throw new RequestError('The answer is not a SOAP envelope.');
  const fault = child(body, 'Fault');
  if (fault) throw new RequestError(faultText(fault));
  const answer = child(body, `${operation}Response`);
  if (!answer) throw new RequestError(`The answer has no ${operation}Response.`);
  return answer;
}

function faultText(fault: AnswerElement): string {
  const reason = (find(fault, 'faultstring') ?? find(fault, 'Text'))?.text.trim() ?? '';
  const detail = child(fault, 'detail') ?? child(fault, 'Detail');
  const code = (detail && find(detail, 'Code'))?.text.trim() ?? '';
  const advice = /^49[89]$/.test(code) ? ' Give a valid token in STEWARD_TOKEN or with --token-file.' : '';
  return `The server answered with a fault: ${reason}${advice}`;
}

function readDescription(element: AnswerElement): ServiceDescription {
  const textOf = (name: string) => child(element, name)?.text ?? '';
  return {
    name: textOf('Name'),
    type: textOf('Type'),
    url: textOf('Url'),
    parentType: textOf('ParentType'),
    capabilities: textOf('Capabilities'),
    description: textOf('Description'),
  };
}

/** An element of an answer, with any prefix, by its local name. */
type AnswerElement = {
  /** Without the prefix. */
  readonly name: string;
  readonly attributes: Readonly<Record<string, string>>;
  readonly children: readonly AnswerElement[];
  readonly text: string;
};

/** What fast-xml-parser returns for each node: one key with its children, and the attributes. */
type Node = Readonly<Record<string, unknown>>;

const attributesKey = ':@';
const cdataKey = '#cdata';

const parser = new XMLParser({
  preserveOrder: true,
  removeNSPrefix: true,
  ignoreAttributes: false,
  attributeNamePrefix: '',
  cdataPropName: cdataKey,
  ignoreDeclaration: true,
  ignorePiTags: true,
  parseTagValue: false,
  parseAttributeValue: false,
  // The parser would decode no numeric references.
  processEntities: false,
  trimValues: false,
});

const named: Readonly<Record<string, string>> = { lt: '<', gt: '>', amp: '&', quot: '"', apos: "'" };

function decode(text: string): string {
  return text.replace(
    /&(?:#(x?)([0-9a-fA-F]{1,7})|([a-z]{2,4}));/g,
    (all, x: string, digits, name: string) => {
      const code = Number(`${x === '' ? '' : '0x'}${digits}`);
      return named[name] ?? (code <= 0x10ffff ? String.fromCodePoint(code) : all);
    },
  );
}

/** Elements and attributes take the parser much more memory than their text. */
const maxParts = 500_000;

/** The root element. Throws for text that is no well-formed XML. */
function readAnswerXml(text: string): AnswerElement {
  // Entities of a document type could expand to any size.
  if (text.includes('<!DOCTYPE'))
    throw new RequestError('The answer has a document type, which is not read.');
  if (countParts(text) > maxParts)
    throw new RequestError(`The answer has more than ${maxParts} elements and attributes.`);
  const [root] = parse(text).flatMap(toElements);
  if (!root || !endsWith(text, root)) throw new RequestError('The answer is not XML, or is not complete.');
  return root;
}

/** At least as many as the text has: a CDATA section or a text may have parts that look like them. */
function countParts(text: string): number {
  const parts = /<[^/!?]|=["'\s]/g;
  let count = 0;
  while (count <= maxParts && parts.test(text)) count += 1;
  return count;
}

function parse(text: string): Node[] {
  try {
    return parser.parse(text) as Node[];
  } catch (error) {
    throw new RequestError(`The answer is not XML: ${(error as Error).message}`, { cause: error });
  }
}

/** The parser reads a document that is cut off as if all elements were closed. */
function endsWith(text: string, { name }: AnswerElement): boolean {
  const end = text.lastIndexOf('</');
  if (end < 0) return text.trimEnd().endsWith('/>');
  const tag = text.slice(end + 2, text.indexOf('>', end)).trimEnd();
  return tag.slice(tag.indexOf(':') + 1) === name;
}

function child({ children }: AnswerElement, name: string): AnswerElement | undefined {
  return children.find((element) => element.name === name);
}

/** The first element with this name, at any depth. */
function find(element: AnswerElement, name: string): AnswerElement | undefined {
  if (element.name === name) return element;
  for (const inner of element.children) {
    const found = find(inner, name);
    if (found) return found;
  }
  return undefined;
}

function toElements(node: Node): AnswerElement[] {
  const name = Object.keys(node).find((key) => key !== attributesKey);
  if (name === undefined || name.startsWith('#')) return [];
  const content = node[name] as Node[];
  return [
    {
      name,
      attributes: Object.fromEntries(
        Object.entries(node[attributesKey] ?? {}).map(([key, value]) => [key, decode(String(value))]),
      ),
      children: content.flatMap(toElements),
      text: content.map(textOf).join(''),
    },
  ];
}

function textOf(node: Node): string {
  if ('#text' in node) return decode(String(node['#text']));
  const [section] = (node[cdataKey] ?? []) as { '#text': string }[];
  return section?.['#text'] ?? '';
}
