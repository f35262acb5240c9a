// The seven SOAP operations of the catalog, and its WSDL.
import { ServiceError } from '../lib/errors.ts';
import { toNfc, truncate } from '../lib/text.ts';
import type { SoapOperation } from '../soap/handler.ts';
import { escapeAttribute, escapeText } from '../soap/xml/escape.ts';
import type { CatalogCache } from './catalog-cache.ts';
import { type Service, addressOfService, fullNameOf, rootFolder } from './catalog.ts';
import { audienceOf } from './listing.ts';

type CatalogSoapOptions = {
  readonly catalogCache: CatalogCache;
  readonly names: CatalogNames;
  readonly requireTokens: boolean;
  readonly baseUrl: () => string;
  readonly tokenServiceUrl: () => string;
};

export type CatalogOperation = SoapOperation & {
  readonly response: { readonly field: string; readonly type: string };
};

export type OperationName =
  | 'GetMessageVersion'
  | 'GetMessageFormats'
  | 'GetTokenServiceURL'
  | 'GetFolders'
  | 'GetServiceDescriptions'
  | 'RequiresTokens'
  | 'GetServiceDescriptionsEx';

export function catalogOperations(options: CatalogSoapOptions): Record<OperationName, CatalogOperation> {
  const { catalogCache, names } = options;

  /** A client needs these values before it can sign in. */
  const open = (field: string, type: string, value: () => string): CatalogOperation => ({
    arguments: [],
    access: 'open',
    response: { field, type },
    answer: () => catalogCache.content(field, () => [element(field, escapeText(value()))]),
  });

  return {
    GetMessageVersion: open('MessageVersion', names.versionType, () => names.version),
    GetMessageFormats: open('MessageFormats', names.messageFormatType, () => names.messageFormat),
    GetTokenServiceURL: open('TokenServiceURL', 'string', options.tokenServiceUrl),
    GetFolders: {
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
    RequiresTokens: open('Result', 'boolean', () => String(options.requireTokens)),
    GetServiceDescriptionsEx: {
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
  };
}

function* foldersXml(folders: readonly string[]): Iterable<string> {
  yield '<FolderNames>';
  for (const name of folders) yield element('String', escapeText(name));
  yield '</FolderNames>';
}

function* servicesXml(services: readonly Service[], baseUrl: string): Iterable<string> {
  yield '<ServiceDescriptions>';
  for (const service of services) yield serviceXml(service, baseUrl);
  yield '</ServiceDescriptions>';
}

function serviceXml(service: Service, baseUrl: string): string {
  return element(
    'ServiceDescription',
    element('Name', escapeText(fullNameOf(service))) +
      element('Type', service.type) +
      element('Url', escapeText(addressOfService(service, baseUrl))) +
      element('ParentType', service.parentType) +
      element('Capabilities', escapeText(service.capabilities)) +
      element('Description', escapeText(service.description)),
  );
}

function element(name: string, content: string): string {
  return `<${name}>${content}</${name}>`;
}

/** Every name that contains VENDOR_PREFIX or PRODUCT_NAME. */
type CatalogNames = {
  readonly versionType: string;
  readonly version: string;
  readonly messageFormatType: string;
  readonly messageFormat: string;
};

export function catalogNames(vendorPrefix: string, productName: string): CatalogNames {
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
};

/** Fills the names and addresses into the template. */
export function fillWsdl(template: string, { namespace, baseUrl, names }: WsdlValues): string {
  const values = {
    '{catalog_namespace}': namespace,
    '{base_url}': baseUrl,
    '{version_type}': names.versionType,
    '{message_format_type}': names.messageFormatType,
  };
  const lines = template.split('\n').filter((line) => !line.startsWith('<!--'));
  return Object.entries(values).reduce(
    (filled, [placeholder, value]) => filled.replaceAll(placeholder, () => escapeAttribute(value)),
    lines.join('\n'),
  );
}
