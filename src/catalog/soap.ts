// The SOAP operations of the catalog, and its WSDL.
import { ServiceError } from '../lib/errors.ts';
import { toNfc, truncate } from '../lib/text.ts';
import type { ChildForm } from '../soap/envelope.ts';
import type { SoapOperation } from '../soap/handler.ts';
import { escapeAttribute, escapeText } from '../soap/xml/escape.ts';
import type { CatalogCache } from './catalog-cache.ts';
import {
  type Service,
  addressOfService,
  audienceOf,
  fullNameOf,
  isStarted,
  rootFolder,
  soapElement,
  soapFields,
} from './catalog.ts';

type CatalogSoapOptions = {
  readonly catalogCache: CatalogCache;
  readonly names: CatalogNames;
  readonly requireTokens: boolean;
  readonly baseUrl: () => string;
  readonly tokenServiceUrl: () => string;
};

export type CatalogOperation = SoapOperation & {
  /** What it answers, as the page and the reference say it. */
  readonly purpose: string;
  readonly response: { readonly field: string; readonly type: string };
};

export type CatalogOperations = Readonly<Record<string, CatalogOperation>>;

/** The WSDL has them in this order. */
export function catalogOperations(options: CatalogSoapOptions) {
  const { catalogCache, names } = options;

  /** A client needs these values before it can sign in. */
  const open = (purpose: string, field: string, type: string, value: () => string): CatalogOperation => ({
    purpose,
    arguments: [],
    access: 'open',
    response: { field, type },
    answer: () => catalogCache.content(field, () => [element(field, escapeText(value()))]),
  });

  return {
    GetMessageVersion: open(
      'The version of the messages that the catalog speaks.',
      'MessageVersion',
      names.versionType,
      () => names.version,
    ),
    GetMessageFormats: open(
      'The message formats that the catalog speaks: SOAP, and no binary format.',
      'MessageFormats',
      names.messageFormatType,
      () => names.messageFormat,
    ),
    GetTokenServiceURL: open(
      'The address that issues tokens.',
      'TokenServiceURL',
      'string',
      options.tokenServiceUrl,
    ),
    GetFolders: {
      purpose: 'The folders that the caller may see, sorted by code point, without the root.',
      arguments: [],
      access: 'token',
      response: { field: 'FolderNames', type: 'ArrayOfString' },
      answer: ({ caller }) => {
        const audience = audienceOf(caller);
        return catalogCache.content(`folders ${audience}`, () =>
          foldersXml(catalogCache.listing(audience).folders),
        );
      },
    },
    GetServiceDescriptions: {
      purpose: 'Every service that the caller may see: the root first, then by folder, name and type.',
      arguments: [],
      access: 'token',
      response: { field: 'ServiceDescriptions', type: 'ArrayOfServiceDescription' },
      answer: ({ caller }) => {
        const audience = audienceOf(caller);
        return catalogCache.content(`services ${audience}`, () =>
          servicesXml(catalogCache.listing(audience).services, options.baseUrl()),
        );
      },
    },
    RequiresTokens: open(
      'Whether the operations that list folders and services need a token.',
      'Result',
      'boolean',
      () => String(options.requireTokens),
    ),
    GetServiceDescriptionsEx: {
      purpose: 'The services of one folder that the caller may see; / is the root.',
      arguments: ['FolderName'],
      access: 'token',
      response: { field: 'ServiceDescriptions', type: 'ArrayOfServiceDescription' },
      answer: async ({ arguments: { FolderName }, caller }) => {
        const folderName = toNfc(FolderName?.trim() ?? '') || rootFolder;
        const audience = audienceOf(caller);
        const servicesIn = () => catalogCache.listing(audience).byFolder.get(folderName);
        if (!servicesIn())
          throw new ServiceError('not-found', `There is no folder named ${truncate(folderName, 128)}.`, {
            element: 'FolderName',
          });
        // The folder may be deleted before the rendering begins.
        return catalogCache.content(`services ${audience} ${folderName}`, () =>
          servicesXml(servicesIn() ?? [], options.baseUrl()),
        );
      },
    },
  } satisfies CatalogOperations;
}

function* foldersXml(folders: readonly string[]): Iterable<string> {
  yield '<FolderNames>';
  for (const name of folders) yield element('String', escapeText(name));
  yield '</FolderNames>';
}

function* servicesXml(services: readonly Service[], baseUrl: string): Iterable<string> {
  yield '<ServiceDescriptions>';
  for (const service of services.filter(isStarted)) yield serviceXml(service, baseUrl);
  yield '</ServiceDescriptions>';
}

function serviceXml(service: Service, baseUrl: string): string {
  const texts = { ...service, name: fullNameOf(service), url: addressOfService(service, baseUrl) };
  const fields = soapFields.map((field) => element(soapElement(field), escapeText(texts[field])));
  return element('ServiceDescription', fields.join(''));
}

function element(name: string, content: string): string {
  return `<${name}>${content}</${name}>`;
}

/** Every name that contains VENDOR_PREFIX or PRODUCT_NAME. */
type CatalogNames = ReturnType<typeof catalogNames>;

export function catalogNames(vendorPrefix: string, productName: string) {
  const versionType = `${vendorPrefix}${productName}Version`;
  const messageFormatType = `${vendorPrefix}ServiceCatalogMessageFormat`;
  return {
    versionType,
    version: `${versionType}10`,
    messageFormatType,
    messageFormat: `${messageFormatType}Soap`,
  };
}

type WsdlValues = {
  readonly namespace: string;
  readonly baseUrl: string;
  readonly names: CatalogNames;
  readonly form: ChildForm;
  readonly operations: readonly string[];
};

/** Fills the names and addresses into the template, and writes its marked parts once for each operation. */
export function fillWsdl(
  template: string,
  { namespace, baseUrl, names, form, operations }: WsdlValues,
): string {
  const repeat = (text: string) => {
    const [part = '', rest] = text.split('<!-- end -->\n');
    if (rest === undefined) return text;
    return operations.map((name) => part.replaceAll('{operation}', name)).join('') + rest;
  };
  const complete = template.split('<!-- each operation -->\n').map(repeat).join('');
  const values = {
    '{catalog_namespace}': namespace,
    '{base_url}': baseUrl,
    '{version_type}': names.versionType,
    '{message_format_type}': names.messageFormatType,
    // The default of XML Schema is unqualified.
    ...(form === 'unqualified' && { ' elementFormDefault="qualified"': '' }),
  };
  const lines = complete.split('\n').filter((line) => !line.startsWith('<!--'));
  return Object.entries(values).reduce(
    (filled, [placeholder, value]) => filled.replaceAll(placeholder, () => escapeAttribute(value)),
    lines.join('\n'),
  );
}
