// Compares the XML reader with libxml2 on generated and broken documents: both must refuse the same documents and
// read the same trees. FUZZ_RUNS sets the number of documents (default 3,000); fast-check prints the seed of a
// document on which they differ.
import fc from 'fast-check';
import * as libxml2 from 'libxml2-wasm';
import { describe, expect, it } from 'vitest';
import { ServiceError } from '../../src/lib/errors.ts';
import { decodeXml } from '../../src/soap/xml/decode.ts';
import { type XmlElement, readXml } from '../../src/soap/xml/reader.ts';
import { print } from '../kit/xml.ts';
import { broken, encoded, generated } from './xml-documents.ts';

const RUNS = Number(process.env.FUZZ_RUNS ?? 3000);

describe('readXml and libxml2', () => {
  type Verdict = { tree: string; isRefusedOnPurpose: boolean } | 'refused' | 'not comparable';
  type Counts = { depth: number; elements: number; attributes: number };

  /** The binding throws on every error, violations of namespace constraints included. */
  function judge(parse: (option: libxml2.ParseOption) => libxml2.XmlDocument): Verdict {
    let document: libxml2.XmlDocument;
    try {
      // Without this option, libxml2 also checks xml:id, which the reader does not.
      document = parse(libxml2.ParseOption.XML_PARSE_SKIP_IDS);
    } catch (error) {
      if (!(error instanceof libxml2.XmlParseError)) throw error;
      // libxml2 refuses namespace names that are not URIs, which the recommendation allows, and then does not
      // report some later errors. Such a document cannot be compared.
      const errors = error.details.filter(({ level }) => level > 1);
      const isAboutUris =
        errors.length > 0 && errors.every(({ message }) => message.endsWith(' is not a valid URI\n'));
      return isAboutUris ? 'not comparable' : 'refused';
    }
    try {
      const counts = { depth: 0, elements: 0, attributes: 0 };
      const hasInstruction = document.get('//processing-instruction()') !== null;
      if (hasInstruction || document.dtd !== null) return { tree: '', isRefusedOnPurpose: true };
      const tree = print(convertElement(document.root, counts, 1));
      return {
        tree,
        isRefusedOnPurpose: counts.depth > 32 || counts.elements > 1000 || counts.attributes > 64,
      };
    } finally {
      document.dispose();
    }
  }

  function convertElement(from: libxml2.XmlElement, counts: Counts, depth: number): XmlElement {
    const attributeCount = from.attrs.length + Object.keys(from.nsDeclarations).length;
    counts.depth = Math.max(counts.depth, depth);
    counts.elements++;
    counts.attributes = Math.max(counts.attributes, attributeCount);
    const children: XmlElement[] = [];
    let ownText = '';
    for (let node = from.firstChild; node !== null; node = node.next) {
      if (node instanceof libxml2.XmlElement) children.push(convertElement(node, counts, depth + 1));
      else if (node instanceof libxml2.XmlText || node instanceof libxml2.XmlCData) ownText += node.content;
    }
    const list = from.attrs.map((a) => ({ namespace: a.namespaceUri, name: a.name, value: a.content }));
    return { namespace: from.namespaceUri, name: from.name, attributes: list, children, text: ownText };
  }

  /** Whether libxml2 accepts the document although the recommendations do not allow it. */
  function isWronglyAccepted(document: string): boolean {
    const hasVersionWithoutDigit = /^<\?xml\s+version\s*=\s*["']1\.["']/.test(document);
    const declaresXmlTwice = /\sxmlns:xml\s*=[^<]*\sxmlns:xml\s*=/.test(document);
    return hasVersionWithoutDigit || declaresXmlTwice;
  }

  /** Returns whether both readers accepted the document. */
  function expectAgreement(run: () => XmlElement, verdict: Verdict): boolean {
    let tree: string | undefined;
    let refusal = '';
    try {
      tree = print(run());
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      refusal = error.message;
    }
    if (verdict === 'not comparable') return false;
    if (verdict === 'refused' || verdict.isRefusedOnPurpose) {
      if (tree !== undefined) throw new Error(`libxml2 refuses the document, but readXml read ${tree}`);
      return false;
    }
    if (tree === undefined) throw new Error(`libxml2 reads the document, but readXml refused it: ${refusal}`);
    // The binding loses U+FEFF at the start of a string.
    if (tree.replaceAll('\uFEFF', '') !== verdict.tree.replaceAll('\uFEFF', '')) {
      throw new Error(`readXml read ${tree}, libxml2 read ${verdict.tree}`);
    }
    return true;
  }

  function compareTexts(document: string): boolean {
    // readXml gets decoded text, so it ignores the declared encoding and expects no byte order mark.
    if (document.startsWith('\uFEFF') || isWronglyAccepted(document)) return false;
    const option = libxml2.ParseOption.XML_PARSE_IGNORE_ENC;
    const verdict = judge((other) => libxml2.XmlDocument.fromString(document, { option: option | other }));
    return expectAgreement(() => readXml(document), verdict);
  }

  function compareBytes(bytes: Buffer): boolean {
    const latin1 = bytes.toString('latin1').replaceAll('\0', '');
    const declared = /^<\?xml[^>]*\sencoding\s*=\s*["']([^"']*)["']/.exec(latin1)?.[1]?.toLowerCase();
    const isUtf16 = bytes.subarray(0, 2).includes(0);
    if (isWronglyAccepted(latin1.replace(/^(\xEF\xBB\xBF|\xFF\xFE|\xFE\xFF)/, ''))) return false;
    // libxml2 detects UTF-16 without a byte order mark only by "<?", and then ignores the declared encoding.
    if (isUtf16 && declared !== 'utf-16') return false;
    const isSupported = declared === undefined || /^(utf-?8|utf-16|us-ascii)$/.test(declared);
    const verdict = isSupported
      ? judge((option) => libxml2.XmlDocument.fromBuffer(bytes, { option }))
      : 'refused';
    return expectAgreement(() => readXml(decodeXml(bytes, undefined)), verdict);
  }

  /** Compares `share` of all runs. */
  function expectAgreementOn<T>(
    documents: fc.Arbitrary<T>,
    compare: (document: T) => boolean,
    share: number,
  ): void {
    let read = 0;
    const property = fc.property(documents, (document) => {
      if (compare(document)) read++;
    });
    fc.assert(property, { numRuns: Math.ceil(RUNS * share) });
    expect(read, 'too few documents that both readers accept').toBeGreaterThan((RUNS * share) / 20);
  }

  const options = { timeout: 60_000 + RUNS * 10 };

  it('read the same trees from generated documents', options, () => {
    expectAgreementOn(generated, compareTexts, 0.35);
  });

  it('agree on which of the broken documents to refuse', options, () => {
    expectAgreementOn(broken, compareTexts, 0.5);
  });

  it('agree on the encodings of generated and broken documents', options, () => {
    expectAgreementOn(encoded, compareBytes, 0.15);
  });
});
