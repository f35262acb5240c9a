// Reads the XML of another server, with any prefixes, into elements by their local names.
import { XMLParser } from 'fast-xml-parser';
import { RequestError } from '../lib/request-error.ts';

export type AnswerElement = {
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

/** References are decoded below: the parser would also decode them in CDATA sections, and knows no numeric ones. */
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
  processEntities: false,
  trimValues: false,
});

/** Elements and attributes take the parser much more memory than their text. */
const maxParts = 500_000;

/** The root element. Throws for text that is no well-formed XML. */
export function readAnswerXml(text: string): AnswerElement {
  // Entities of a document type could expand to any size.
  if (text.includes('<!DOCTYPE'))
    throw new RequestError('The answer has a document type, which is not read.');
  if (countParts(text) > maxParts)
    throw new RequestError(`The answer has more than ${maxParts} elements and attributes.`);
  const [root] = parse(text).flatMap(toElements);
  if (!root) throw new RequestError('The answer is not XML.');
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
    // Without its check of the text, the parser reads documents that are not well-formed.
    // oxlint-disable-next-line typescript/no-deprecated -- the replacement is a package of its own
    return parser.parse(text, true) as Node[];
  } catch (error) {
    throw new RequestError(`The answer is not XML: ${(error as Error).message}`, { cause: error });
  }
}

export function child({ children }: AnswerElement, name: string): AnswerElement | undefined {
  return children.find((element) => element.name === name);
}

/** The first element with this name, at any depth. */
export function find(element: AnswerElement, name: string): AnswerElement | undefined {
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
  const attributes = (node[attributesKey] ?? {}) as Record<string, string>;
  return [
    {
      name,
      attributes: Object.fromEntries(Object.entries(attributes).map(([key, value]) => [key, decode(value)])),
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

const named: Readonly<Record<string, string>> = { lt: '<', gt: '>', amp: '&', quot: '"', apos: "'" };

function decode(text: string): string {
  return text.replace(
    /&(?:#x([0-9a-f]{1,6})|#([0-9]{1,7})|(lt|gt|amp|quot|apos));/gi,
    (whole, hex, dec, name) => {
      if (typeof name === 'string') return named[name] ?? whole;
      const code = parseInt((hex ?? dec) as string, hex === undefined ? 10 : 16);
      return code <= 0x10ffff ? String.fromCodePoint(code) : whole;
    },
  );
}
