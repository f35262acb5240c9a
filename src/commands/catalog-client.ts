// A SOAP client of the catalog of any server: its folders and the descriptions of its services.
import { type SoapField, soapElement, soapFields } from '../catalog/catalog.ts';
import { RequestError } from '../lib/request-error.ts';
import { decodeXml } from '../soap/xml/decode.ts';
import { wrapEnvelope } from '../soap/envelope.ts';
import { escapeAttribute, escapeText } from '../soap/xml/escape.ts';
import { type XmlElement, readXml } from '../soap/xml/reader.ts';
import type { Send } from './remote.ts';

const defaultNamespace = 'http://www.example.com/schemas/Product/10.0';

export type ServiceDescription = Readonly<Record<SoapField, string>>;

/** A catalog of 50,000 services has a few hundred thousand. */
const maxElements = 500_000;

export type CatalogClient = {
  /** The address that the server gives its clients. */
  readonly ownAddress: string;
  readonly folders: () => Promise<string[]>;
  /** An empty name is the root. */
  readonly services: (folderName: string) => Promise<ServiceDescription[]>;
};

/** Asks for the WSDL, which names the namespace of requests. The default one is used if there is no WSDL. */
export async function connectCatalog(
  send: Send,
  given: URL,
  token: string | undefined,
): Promise<CatalogClient> {
  const address = new URL(given.origin + given.pathname);
  const { status, body: wsdl } = await send(new URL('?wsdl', address), { method: 'GET' });
  const { namespace = defaultNamespace, ownAddress = address.href } =
    (status === 200 && readWsdl(wsdl)) || {};
  const headers = {
    'content-type': 'text/xml; charset=utf-8',
    soapaction: '""',
    ...(token !== undefined && { authorization: `Bearer ${token}` }),
  };

  const call = async (operation: string, content = ''): Promise<XmlElement> => {
    const element = `<${operation} xmlns="${escapeAttribute(namespace)}">${content}</${operation}>`;
    const body = wrapEnvelope('1.1', `<soap:Body>${element}</soap:Body>`);
    const answer = await send(address, { method: 'POST', headers, body });
    try {
      return readAnswer(answer.body, operation);
    } catch (error) {
      const where = `${address.href}: ${operation} (HTTP ${answer.status})`;
      throw new RequestError(`${where}: ${(error as Error).message}`, { cause: error });
    }
  };

  return {
    ownAddress,
    folders: async () => {
      const names = childOf(await call('GetFolders'), 'FolderNames');
      return entriesOf(names, 'String').map(({ text }) => text);
    },
    services: async (folderName) => {
      const argument = `<FolderName>${escapeText(folderName)}</FolderName>`;
      const list = childOf(await call('GetServiceDescriptionsEx', argument), 'ServiceDescriptions');
      return entriesOf(list, 'ServiceDescription').map(readDescription);
    },
  };
}

function readWsdl(bytes: Buffer): { namespace: string; ownAddress?: string | undefined } | undefined {
  try {
    const definitions = parse(bytes);
    const namespace = attributeOf(definitions, 'targetNamespace');
    const port = childOf(childOf(definitions, 'service'), 'port');
    const ownAddress = attributeOf(childOf(port, 'address'), 'location');
    return namespace ? { namespace, ownAddress } : undefined;
  } catch {
    return undefined;
  }
}

/** The element of the answer. Throws the reason of a fault. */
function readAnswer(bytes: Buffer, operation: string): XmlElement {
  const envelope = parse(bytes);
  const body = childOf(envelope, 'Body');
  if (envelope.name !== 'Envelope' || !body) throw new RequestError('The answer is not a SOAP envelope.');
  const fault = childOf(body, 'Fault');
  if (fault) throw new RequestError(faultText(fault));
  const answer = childOf(body, `${operation}Response`);
  if (!answer) throw new RequestError(`The answer has no ${operation}Response.`);
  return answer;
}

/** The names of SOAP 1.1, or else those of 1.2. */
function faultText(fault: XmlElement): string {
  const reason = childOf(fault, 'faultstring') ?? childOf(childOf(fault, 'Reason'), 'Text');
  const detail = childOf(fault, 'detail') ?? childOf(fault, 'Detail');
  const code = childOf(childOf(detail, 'Error'), 'Code')?.text.trim() ?? '';
  const advice = /^49[89]$/.test(code) ? ' Give a valid token in STEWARD_TOKEN or with --token-file.' : '';
  return `The server answered with a fault: ${reason?.text.trim() ?? ''}${advice}`;
}

function readDescription(described: XmlElement): ServiceDescription {
  const texts = soapFields.map((field) => [field, childOf(described, soapElement(field))?.text ?? '']);
  return Object.fromEntries(texts) as ServiceDescription;
}

function parse(bytes: Buffer): XmlElement {
  try {
    return readXml(decodeXml(bytes, undefined), maxElements);
  } catch (error) {
    throw new RequestError(`The answer cannot be read: ${(error as Error).message}`, { cause: error });
  }
}

/** The first of this name, in any namespace. */
function childOf(element: XmlElement | undefined, name: string): XmlElement | undefined {
  return element?.children.find((child) => child.name === name);
}

/** Throws for another element: the list would be incomplete without it. */
function entriesOf(list: XmlElement | undefined, name: string): readonly XmlElement[] {
  const entries = list?.children ?? [];
  const other = entries.find((entry) => entry.name !== name);
  if (other) throw new RequestError(`The answer has ${other.name} where only ${name} may be.`);
  return entries;
}

function attributeOf(element: XmlElement | undefined, name: string): string | undefined {
  return element?.attributes.find((attribute) => attribute.name === name)?.value;
}
