// The seven SOAP operations of the catalog.
import type { Caller } from '../caller.ts';
import { ServiceError } from '../errors.ts';
import { toNfc, truncate } from '../lib/text.ts';
import type { SoapCall, SoapOperation } from '../soap/handler.ts';
import { escapeText } from '../soap/xml/escape.ts';
import { type Service, addressOfService, rootFolder } from './catalog.ts';
import type { CatalogCache } from './catalog-cache.ts';
import { audienceOf } from './listing.ts';
import type { CatalogNames } from './wsdl.ts';

export type CatalogSoapOptions = {
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

  /** `key` must contain everything that the answer depends on besides the operation and the catalog. */
  const cached = ({ response }: SoapCall, key: string, content: () => string): Buffer =>
    catalogCache.get(`${response.key} ${key}`, () => response.wrap(content()));

  /** A client needs these values before it can sign in. */
  const open = (field: string, type: string, value: () => string): CatalogOperation => ({
    arguments: [],
    access: 'open',
    response: { field, type },
    answer: (call) => cached(call, '', () => element(field, escapeText(value()))),
  });

  return {
    GetMessageVersion: open('MessageVersion', names.versionType, () => names.version),
    GetMessageFormats: open('MessageFormats', names.messageFormatType, () => names.messageFormat),
    GetTokenServiceURL: open('TokenServiceURL', 'string', options.tokenServiceUrl),
    GetFolders: {
      arguments: [],
      access: 'token',
      response: { field: 'FolderNames', type: 'ArrayOfString' },
      answer: (call) => {
        const audience = audienceOf(call.caller);
        return cached(call, audience, () => foldersXml(catalogCache.listing(audience).folders));
      },
    },
    GetServiceDescriptions: {
      arguments: [],
      access: 'token',
      response: { field: 'ServiceDescriptions', type: 'ArrayOfServiceDescription' },
      answer: (call) => {
        const audience = audienceOf(call.caller);
        return cached(call, audience, () =>
          servicesXml(catalogCache.listing(audience).services, options.baseUrl()),
        );
      },
    },
    RequiresTokens: open('Result', 'boolean', () => String(options.requireTokens)),
    GetServiceDescriptionsEx: {
      arguments: ['FolderName'],
      access: 'token',
      response: { field: 'ServiceDescriptions', type: 'ArrayOfServiceDescription' },
      answer: (call) => {
        const folderName = toNfc(call.arguments.FolderName?.trim() ?? '') || rootFolder;
        const services = servicesIn(catalogCache, folderName, call.caller);
        return cached(call, `${audienceOf(call.caller)} ${folderName}`, () =>
          servicesXml(services, options.baseUrl()),
        );
      },
    },
  };
}

function servicesIn(catalogCache: CatalogCache, folderName: string, caller: Caller): readonly Service[] {
  const services = catalogCache.listing(audienceOf(caller)).byFolder.get(folderName);
  if (services === undefined) {
    throw new ServiceError('not-found', `There is no folder named ${truncate(folderName, 128)}.`);
  }
  return services;
}

function foldersXml(folders: readonly string[]): string {
  return element('FolderNames', folders.map((name) => element('String', escapeText(name))).join(''));
}

function servicesXml(services: readonly Service[], baseUrl: string): string {
  return element('ServiceDescriptions', services.map((service) => serviceXml(service, baseUrl)).join(''));
}

function serviceXml(service: Service, baseUrl: string): string {
  const { folderName, serviceName } = service;
  const name = folderName === rootFolder ? serviceName : `${folderName}/${serviceName}`;
  return element(
    'ServiceDescription',
    element('Name', escapeText(name)) +
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
