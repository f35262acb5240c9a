// SOAP edge of the catalog: the seven operations of spec 4.2, answered as contract 7 says.
import { toNfc, truncate } from '../lib/text.ts';
import type { Caller } from '../caller.ts';
import { ServiceError } from '../errors.ts';
import type { SoapOperation } from '../soap/handler.ts';
import { escapeText } from '../soap/xml/escape.ts';
import { type Service, addressOfService, rootFolder } from './catalog.ts';
import type { CatalogCache } from './catalog-cache.ts';
import { audienceOf } from './listing.ts';
import type { CatalogNames } from './wsdl.ts';

export type CatalogSoapOptions = {
  catalogCache: CatalogCache;
  names: CatalogNames;
  requireTokens: boolean;
  /** `{base_url}` of the spec, as clients are told it. */
  baseUrl: () => string;
  tokenServiceUrl: () => string;
};

/** An operation and its one response field, as the WSDL declares it. */
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

  /** What a client needs in order to sign in: a single value, the same for everybody. */
  const open = (field: string, type: string, value: () => string): CatalogOperation => ({
    arguments: [],
    access: 'open',
    response: { field, type },
    answer: () => ({ key: '', make: () => element(field, escapeText(value())) }),
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
        return {
          key: audience,
          make: () => {
            const { folders } = catalogCache.listing(audience);
            return element(
              'FolderNames',
              folders.map((name) => element('String', escapeText(name))).join(''),
            );
          },
        };
      },
    },
    GetServiceDescriptions: {
      arguments: [],
      access: 'token',
      response: { field: 'ServiceDescriptions', type: 'ArrayOfServiceDescription' },
      answer: ({ caller }) => {
        const audience = audienceOf(caller);
        return { key: audience, make: () => servicesXml(catalogCache.listing(audience).services) };
      },
    },
    RequiresTokens: open('Result', 'boolean', () => String(options.requireTokens)),
    GetServiceDescriptionsEx: {
      arguments: ['FolderName'],
      access: 'token',
      response: { field: 'ServiceDescriptions', type: 'ArrayOfServiceDescription' },
      answer: ({ arguments: { FolderName }, caller }) => {
        const folderName = toNfc(FolderName?.trim() ?? '') || rootFolder;
        const services = servicesIn(folderName, caller);
        return { key: `${audienceOf(caller)} ${folderName}`, make: () => servicesXml(services) };
      },
    },
  };

  function servicesIn(folderName: string, caller: Caller): readonly Service[] {
    const services = catalogCache.listing(audienceOf(caller)).byFolder.get(folderName);
    if (services === undefined) {
      throw new ServiceError('not-found', `There is no folder named ${truncate(folderName, 128)}.`);
    }
    return services;
  }

  function servicesXml(services: readonly Service[]): string {
    const baseUrl = options.baseUrl();
    return element('ServiceDescriptions', services.map((service) => serviceXml(service, baseUrl)).join(''));
  }
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
