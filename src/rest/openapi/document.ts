// The OpenAPI 3.1 document of the resource trees.
import { sessionCookie } from '../../http/credentials.ts';
import { type Access, needsToken } from '../../lib/caller.ts';
import type { Json } from '../../lib/json.ts';
import { answerComponents, answerReference, errorAnswer } from '../answer.ts';
import { describeField } from '../fields.ts';
import type { Items, Resource } from '../resource.ts';
import { type Entry, answerOf, partsOf, pathTemplate, walk } from '../tree.ts';
import {
  type Parameter,
  Components,
  commonFields,
  formSchema,
  formTypes,
  queryParameters,
} from './schemas.ts';
import { errorResponses, refusalsOf } from './errors.ts';

export type Tree = {
  readonly name: string;
  readonly prefix: string;
  readonly root: Resource;
  readonly hasPages: boolean;
};

type ApiFacts = {
  readonly version: string;
  readonly publicUrl: string;
  readonly soapUrl: string;
  readonly errorStatus200: boolean;
  /** The requests that the server sends, by name. */
  readonly webhooks: (components: Components) => { readonly [name: string]: Json };
};

type Method = 'get' | 'post';

export function openApiDocument(trees: readonly Tree[], facts: ApiFacts): { readonly [key: string]: Json } {
  const paths: Record<string, Record<string, Json>> = {};
  const components = new Components();
  for (const tree of trees) {
    for (const entry of walk(tree.root)) {
      const path = (paths[pathTemplate(tree.prefix, entry)] ??= {});
      for (const method of methodsOf(entry))
        path[method] = operationObject(method, tree, entry, { facts, components });
    }
  }
  const webhooks = facts.webhooks(components);
  return {
    openapi: '3.1.0',
    info: {
      title: 'Steward',
      version: facts.version,
      description: introduction(facts),
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: facts.publicUrl }],
    externalDocs: { url: `${facts.soapUrl}?wsdl`, description: 'The WSDL of the SOAP service catalog.' },
    tags: trees.flatMap(tagsOf),
    paths,
    webhooks,
    components: {
      schemas: { ...commonFields, ...answerComponents(), ...components.in('schemas') },
      parameters: {
        f: { name: 'f', in: 'query', schema: { $ref: '#/components/schemas/f' } },
        fOrCsv: { name: 'f', in: 'query', schema: { $ref: '#/components/schemas/fOrCsv' } },
        fOfData: { name: 'f', in: 'query', schema: { $ref: '#/components/schemas/fOfData' } },
        ...components.in('parameters'),
      },
      requestBodies: components.in('requestBodies'),
      responses: { SeeOther: seeOther, ...errorResponses() },
      securitySchemes,
    },
  };
}

function methodsOf({ operation, resource }: Entry): Method[] {
  if (operation) return ['post'];
  return resource.onPost ? ['get'] : ['get', 'post'];
}

function introduction({ soapUrl, errorStatus200 }: ApiFacts): string {
  return [
    'Administers a containerized enterprise deployment: its service catalog, webhooks, upgrades, users and mode.',
    'A resource answers GET and POST alike, an operation answers POST; HEAD is GET without a body. Parameters come in the query of a GET and in the ' +
      'form of a POST, urlencoded or multipart. Unknown fields are ignored, repeated ones refused, and a blank value counts as ' +
      'absent. Booleans are true or false in any case of letters. Times are milliseconds since the epoch. Every success is 200. ' +
      'With f=html, or where Accept prefers text/html, the answer is a page instead of the JSON described here.',
    'Every error has the body of the schema Error. Each path and method lists the statuses it may return, the lowest role it needs (x-access), whether it ' +
      'reads or writes (x-effect), whether read-only mode refuses it (x-while-read-only) and whether it is closed while an upgrade job runs (x-during-job).',
    ...(errorStatus200
      ? ['This server sends JSON errors with HTTP 200: the body shows that they are errors.']
      : []),
    `The service catalog itself is a SOAP service (1.1 and 1.2) at ${soapUrl}, described by ${soapUrl}?wsdl and not by this document.`,
  ].join('\n\n');
}

const securitySchemes = {
  bearer: {
    type: 'http',
    scheme: 'bearer',
    description:
      'A token from generateToken, or a key from security/self/keys/create. It takes precedence over the other two.',
  },
  tokenField: {
    type: 'apiKey',
    in: 'query',
    name: 'token',
    description:
      'The same token or key in the query of a GET. A POST carries it in the form field token, never in the query.',
  },
  session: {
    type: 'apiKey',
    in: 'cookie',
    name: sessionCookie,
    description:
      'Set by signing in with f=html. Accepted for GET; a POST also needs the form token of a page in the field token.',
  },
};

/** The parts of a tree that have a tag of their own. A tree without pages is small and has one tag. */
function areasOf({ root, hasPages }: Tree): Readonly<Record<string, Resource>> {
  return hasPages ? root.resources : {};
}

function tagsOf(tree: Tree): Json[] {
  const tag = (tagName: string, { title, description }: Resource) => ({
    name: tagName,
    description: `${title}. ${description}`,
  });
  return [
    tag(tree.name, tree.root),
    ...Object.entries(areasOf(tree)).map(([child, resource]) => tag(child, resource)),
  ];
}

function pathParameters(item: Items): Parameter[] {
  const what = item.resource.title.toLowerCase();
  const parts = partsOf(item);
  return parts.map((name) => ({
    name,
    in: 'path',
    required: true,
    schema: { type: 'string', minLength: 1 },
    description: parts.length > 1 ? `Part of the name of the ${what}.` : `The name or id of the ${what}.`,
  }));
}

type Context = { readonly facts: ApiFacts; readonly components: Components };

function operationObject(method: Method, tree: Tree, entry: Entry, { facts, components }: Context): Json {
  const { operation, resource, items, route } = entry;
  const described = operation ?? resource;
  const { access, duringJob, fields } = described;
  const effect = operation?.effect ?? 'reads';
  const whileReadOnly = effect === 'reads' ? 'allowed' : (operation?.whileReadOnly ?? 'refused');
  const [area = ''] = route.split('/');
  const parameters = [...items.flatMap(pathParameters), ...(method === 'get' ? queryParameters(fields) : [])];
  return {
    tags: [Object.hasOwn(areasOf(tree), area) ? area : tree.name],
    operationId: operationIdOf(method, tree, entry),
    summary: described.title,
    description: [
      described.description,
      effect === 'reads' ? 'Reads only.' : `Writes; ${whileReadOnly} in read-only mode.`,
      accessTexts[access] ?? `Needs a token with at least the role ${access}.`,
      ...(duringJob === 'closed' ? ['Closed (409) while an upgrade job runs.'] : []),
    ].join(' '),
    parameters: [
      ...parameters.map((parameter) => components.reference('parameters', parameter.name, parameter)),
      { $ref: `#/components/parameters/${formatField(tree, entry)}` },
    ],
    ...(method === 'post' && {
      requestBody: components.reference('requestBodies', bodyName(entry), bodyOf(tree, entry)),
    }),
    responses: {
      200: answerResponse(tree, entry, facts),
      ...(operation && { 303: { $ref: '#/components/responses/SeeOther' } }),
      ...refusalsOf(method, described, { hasIds: items.length > 0, operation }),
    },
    security: securityOf(method, access, tree),
    'x-access': access,
    'x-effect': effect,
    'x-while-read-only': whileReadOnly,
    'x-during-job': duringJob,
  };
}

function operationIdOf(method: Method, tree: Tree, entry: Entry): string {
  return method + toPascalCase(pathTemplate(tree.name, entry));
}

function toPascalCase(text: string): string {
  const words = text.match(/[A-Za-z0-9]+/g) ?? [];
  return words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join('');
}

const accessTexts: Partial<Record<Access, string>> = {
  anyone: 'Needs no token.',
  optional: 'Needs no token, but checks one that is given.',
};

function formatField({ hasPages }: Tree, { operation, resource }: Entry): 'f' | 'fOrCsv' | 'fOfData' {
  if (!hasPages) return 'fOfData';
  return operation === undefined && resource.csv ? 'fOrCsv' : 'f';
}

/** Forms without fields of their own are all alike. */
function bodyName({ operation, resource }: Entry): string {
  const { title, fields } = operation ?? resource;
  if (Object.keys(fields).length === 0) return operation ? 'Operation' : 'Resource';
  return toPascalCase(title);
}

function bodyOf(tree: Tree, entry: Entry): Json {
  const { operation, resource } = entry;
  const { fields, access } = operation ?? resource;
  const common = ([formatField(tree, entry), 'token', 'next'] as const).filter((name) => {
    if (name === 'token') return access !== 'anyone';
    return name !== 'next' || operation !== undefined;
  });
  const content = formTypes.map(
    (formType) => [formType, { schema: formSchema(fields, common, formType) }] as const,
  );
  return {
    required: Object.values(fields).some((field) => describeField(field).isRequired),
    content: Object.fromEntries(content),
  };
}

function answerResponse(tree: Tree, entry: Entry, { errorStatus200 }: ApiFacts): Json {
  const schema = answerReference(answerOf(entry));
  return {
    description: entry.operation ? 'The operation succeeded.' : 'The resource.',
    content: {
      'application/json': {
        schema: errorStatus200 ? { anyOf: [schema, answerReference(errorAnswer)] } : schema,
      },
      ...(formatField(tree, entry) === 'fOrCsv' && { 'text/csv': { schema: { type: 'string' } } }),
    },
  };
}

const seeOther = {
  description:
    'The operation succeeded, with f=html: the browser is redirected to next, or to the page after signing in or out.',
  headers: { Location: { schema: { type: 'string' } } },
};

/** Each entry is an alternative. A session posts with the form token in the field `token`. */
function securityOf(method: Method, access: Access, { hasPages }: Tree): Json[] {
  if (access === 'anyone') return [];
  const schemes = ['bearer', ...(method === 'get' ? ['tokenField'] : []), ...(hasPages ? ['session'] : [])];
  // An empty alternative means that no token is needed.
  const none = needsToken(access) ? [] : [{}];
  return [...none, ...schemes.map((scheme) => ({ [scheme]: needsToken(access) ? [access] : [] }))];
}
