// The WSDL declares exactly the operations, arguments, types and names that the code uses.
import { XMLParser } from 'fast-xml-parser';
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { createMemoryStore } from '../../src/app/stores/memory-store.ts';
import { CatalogCache } from '../../src/catalog/catalog-cache.ts';
import { catalogNames, catalogOperations, fillWsdl } from '../../src/catalog/soap.ts';
import { realRuntime } from '../../src/lib/runtime.ts';
import { defaultStoreOptions } from '../kit/store.ts';

const template = readFileSync(new URL('../../wsdl/ServiceCatalog.wsdl', import.meta.url), 'utf8');
const namespace = 'urn:catalog:1.0';
const names = catalogNames('acme', 'Widget');
const operations = catalogOperations({
  catalogCache: new CatalogCache(createMemoryStore(defaultStoreOptions), realRuntime),
  names,
  requireTokens: false,
  baseUrl: () => '',
  tokenServiceUrl: () => '',
});
const filled = fillWsdl(template, {
  namespace,
  baseUrl: 'https://example.com/catalog',
  names,
  form: 'qualified',
  operations: Object.keys(operations),
});

type Named = { '@name': string };
type Element = Named & { '@type': string; '@minOccurs'?: string; '@maxOccurs'?: string };
type Sequence = { sequence: { element?: Element[] } };
type Wsdl = {
  definitions: [
    {
      '@targetNamespace': string;
      types: [
        {
          schema: [
            {
              '@targetNamespace': string;
              '@elementFormDefault': string;
              complexType: (Named & Sequence)[];
              simpleType: (Named & { restriction: { enumeration: { '@value': string }[] } })[];
              element: (Named & { complexType: (Sequence | '')[] })[];
            },
          ];
        },
      ];
      message: (Named & { part: Named & { '@element': string } })[];
      portType: Named & {
        operation: (Named & { input: { '@message': string }; output: { '@message': string } })[];
      };
      binding: Named & {
        binding: { '@style': string };
        operation: (Named & {
          operation: [{ '@soapAction': string; '@style': string }];
          input: { body: { '@use': string } };
          output: { body: { '@use': string } };
        })[];
      };
      service: Named & { port: Named & { '@binding': string; address: { '@location': string } } };
    },
  ];
};

const lists = [
  'definitions',
  'types',
  'schema',
  'complexType',
  'simpleType',
  'element',
  'message',
  'operation',
  'enumeration',
];
const parser = new XMLParser({
  ignoreAttributes: false,
  attributeNamePrefix: '@',
  removeNSPrefix: true,
  parseAttributeValue: false,
  isArray: (name) => lists.includes(name),
});
const [definitions] = (parser.parse(filled) as Wsdl).definitions;
const [schema] = definitions.types[0].schema;

const local = (qname: string) => qname.replace(/^.*:/, '');
const fieldsOf = (elementName: string) => {
  const complexType = schema.element.find((element) => element['@name'] === elementName)?.complexType[0];
  const fields = complexType === '' ? [] : (complexType?.sequence.element ?? []);
  return fields.map((field) => ({
    name: field['@name'],
    type: local(field['@type']),
    optional: field['@minOccurs'] === '0',
  }));
};

it('definitions and schema have the catalog namespace, and elements are qualified', () => {
  expect(definitions['@targetNamespace']).toBe(namespace);
  expect(schema['@targetNamespace']).toBe(namespace);
  expect(schema['@elementFormDefault']).toBe('qualified');
});

it('messages, port type and binding declare exactly the operations of the code', () => {
  const expected = Object.keys(operations);
  expect(definitions.portType.operation.map((operation) => operation['@name'])).toEqual(expected);
  expect(definitions.binding.operation.map((operation) => operation['@name'])).toEqual(expected);
  expect(definitions.message.map((message) => message['@name']).sort()).toEqual(
    expected.flatMap((name) => [`${name}In`, `${name}Out`]).sort(),
  );
  expect(
    schema.element.map((element) => element['@name']),
    'The elements of an operation stand in wsdl/ServiceCatalog.wsdl, in the order of src/catalog/soap.ts.',
  ).toEqual(expected.flatMap((name) => [name, `${name}Response`]));
  for (const message of definitions.message) {
    expect(message.part['@name']).toBe('parameters');
    expect(local(message.part['@element'])).toBe(
      message['@name'].replace(/In$/, '').replace(/Out$/, 'Response'),
    );
  }
});

it.each(Object.entries(operations))(
  '%s has the arguments and the response field of the code',
  (name, operation) => {
    expect(fieldsOf(name).map((field) => field.name)).toEqual(operation.arguments);
    const { field, type } = operation.response;
    expect(fieldsOf(`${name}Response`)).toEqual([{ name: field, type, optional: false }]);
  },
);

it('the binding is SOAP over HTTP, document/literal, with an empty action', () => {
  expect(definitions.binding['@name']).toBe('ServiceCatalogBinding');
  expect(definitions.binding.binding['@style']).toBe('document');
  for (const { operation, input, output } of definitions.binding.operation) {
    expect(operation[0]).toEqual({ '@soapAction': '', '@style': 'document' });
    expect([input.body['@use'], output.body['@use']]).toEqual(['literal', 'literal']);
  }
  expect(definitions.service['@name']).toBe('Catalog');
  expect(definitions.service.port['@name']).toBe('ServiceCatalogPort');
  expect(definitions.service.port.address['@location']).toBe('https://example.com/catalog');
});

it('the enumerations have the configured names and contain the values that the server returns', () => {
  const enumerations = Object.fromEntries(
    schema.simpleType.map((type) => [
      type['@name'],
      type.restriction.enumeration.map((value) => value['@value']),
    ]),
  );
  expect(enumerations).toEqual({
    acmeServiceCatalogMessageFormat: ['Soap', 'Bin', 'SoapOrBin'].map(
      (format) => `acmeServiceCatalogMessageFormat${format}`,
    ),
    acmeWidgetVersion: ['83', '90', '92', '93', '10'].map((version) => `acmeWidgetVersion${version}`),
  });
  expect(enumerations[names.messageFormatType]).toContain(names.messageFormat);
  expect(enumerations[names.versionType]).toContain(names.version);
  expect([names.messageFormat, names.version]).toEqual([
    'acmeServiceCatalogMessageFormatSoap',
    'acmeWidgetVersion10',
  ]);
});

it('the types declare their fields in order', () => {
  const fields = (name: string) => {
    const type = schema.complexType.find((complexType) => complexType['@name'] === name);
    return type?.sequence.element?.map((field) => [
      field['@name'],
      local(field['@type']),
      field['@maxOccurs'],
    ]);
  };
  expect(fields('ServiceDescription')).toEqual(
    ['Name', 'Type', 'Url', 'ParentType', 'Capabilities', 'Description'].map((name) => [
      name,
      'string',
      undefined,
    ]),
  );
  expect(fields('ArrayOfString')).toEqual([['String', 'string', 'unbounded']]);
  expect(fields('ArrayOfServiceDescription')).toEqual([
    ['ServiceDescription', 'ServiceDescription', 'unbounded'],
  ]);
});
