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
  // Without this, the parser would leave numeric references as they are. It does not decode CDATA sections.
  // oxlint-disable-next-line typescript/no-deprecated -- the replacement is a package of its own
  htmlEntities: true,
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
  return [
    {
      name,
      attributes: (node[attributesKey] ?? {}) as Record<string, string>,
      children: content.flatMap(toElements),
      text: content.map(textOf).join(''),
    },
  ];
}

function textOf(node: Node): string {
  if ('#text' in node) return String(node['#text']);
  const [section] = (node[cdataKey] ?? []) as { '#text': string }[];
  return section?.['#text'] ?? '';
}
