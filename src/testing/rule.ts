// Failure rules: what a rule matches, how it responds, and the check of rules that tests send.
import * as z from 'zod';
import { type ErrorKind, ServiceError, usualError, usualMessages } from '../lib/errors.ts';
import type { performedSteps } from '../upgrades/planning/plan.ts';
import { type StepId, stepIds } from '../upgrades/executors/steps.ts';
import { integer } from './input.ts';

/** An error of the kind with the headers of a typical one. */
export function typicalError(kind: ErrorKind): ServiceError {
  return usualError(kind, typicalOptions[kind]);
}

const typicalOptions: Partial<Record<ErrorKind, ConstructorParameters<typeof ServiceError>[2]>> = {
  'wrong-credentials': { problems: [{ message: 'Invalid username or password.' }] },
  'method-not-allowed': { allow: ['GET', 'HEAD', 'POST'] },
  'too-many-requests': { retryAfterSeconds: 60 },
  'read-only': { retryAfterSeconds: 5 },
  unavailable: { retryAfterSeconds: 5 },
};

const errorKinds = Object.keys(usualMessages) as [ErrorKind, ...ErrorKind[]];
const methods = ['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS'] as const;
const maxDelayMs = 600_000;
const headerName = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}$/;
const headerValue = /^[\t\x20-\x7e\x80-\xff]{0,8192}$/;
const maxRules = 1000;

const text = z
  .string('must be a text')
  .min(1, 'must not be empty')
  .max(1024, 'must have at most 1024 characters');

/** Everything is optional, and the page at /control has a field for it. */
const matchFields = {
  route: text
    .optional()
    .meta({ description: 'A path template such as /admin/services. Blank: every request.' }),
  method: z
    .string()
    .toUpperCase()
    .pipe(z.enum(methods, `must be one of ${methods.join(', ')}`))
    .optional()
    .meta({ description: 'Such as POST. Blank: every method.', isAdvanced: true }),
  soapOperation: text
    .optional()
    .meta({ label: 'SOAP operation', description: 'Such as GetFolders.', isAdvanced: true }),
  container: text.toUpperCase().optional().meta({ description: 'Its update fails.', isAdvanced: true }),
  step: z
    .enum([...stepIds], `must be one of ${stepIds.join(', ')}`)
    .optional()
    .meta({ description: 'The step of an upgrade that fails.', isAdvanced: true }),
  receiver: text
    .refine(isOrigin, 'must be an origin such as https://hooks.example.com')
    .optional()
    .meta({ description: 'The origin of a webhook receiver. Nothing is sent to it.', isAdvanced: true }),
};

const matchSchema = z.strictObject(matchFields).check(({ value, issues }) => {
  const kinds = [
    ['route', 'method', 'soapOperation'] as const,
    ['container', 'step'] as const,
    ['receiver'] as const,
  ].filter((names) => names.some((name) => value[name] !== undefined));
  if (kinds.length > 1)
    issues.push({
      code: 'custom',
      input: value,
      message:
        'must name parts of a request (route, method, soapOperation), of a step (container, step) or a receiver, and not of several',
    });
});

const respondFields = {
  error: z
    .enum(errorKinds, `must be one of ${errorKinds.join(', ')}`)
    .optional()
    .meta({ description: 'The answer of this error kind, with its status and headers.' }),
  status: integer(200, 599).optional().meta({ label: 'HTTP status', description: 'Another way to fail.' }),
  body: z
    .string('must be a text')
    .max(1024 ** 2, 'must have at most 1048576 characters')
    .optional()
    .meta({ description: 'In place of JSON, such as the page of a proxy.', isAdvanced: true }),
  headers: z
    .record(
      z.string().regex(headerName, 'must be the name of a header'),
      z.string('must be a text').regex(headerValue, 'must be the value of a header'),
    )
    .optional(),
  fault: z
    .enum(['Client', 'Server'], 'must be Client or Server')
    .optional()
    .meta({ label: 'SOAP fault', description: 'For SOAP calls.', isAdvanced: true }),
  delayMs: integer(0, maxDelayMs)
    .optional()
    .meta({ label: 'Delay (ms)', description: 'Alone: the request continues after it.', isAdvanced: true }),
  disconnect: z
    .boolean('must be true or false')
    .optional()
    .meta({ description: 'Closes the connection without an answer.', isAdvanced: true }),
  truncateAt: integer(1, 1_000_000_000)
    .optional()
    .meta({ description: 'Closes the connection after so many bytes of the body.', isAdvanced: true }),
  dripMs: integer(1, 60_000)
    .optional()
    .meta({ label: 'Drip (ms)', description: 'The pause before each byte of the body.', isAdvanced: true }),
};

export function isRedirection(status: number): boolean {
  return status >= 300 && status < 400;
}

const respondSchema = z.strictObject(respondFields).check(({ value, issues }) => {
  const refuse = (message: string) => issues.push({ code: 'custom', input: value, message });
  const { delayMs, disconnect, error, fault, truncateAt, dripMs, ...answer } = value;
  const isAnswer = fault !== undefined || Object.values(answer).some((part) => part !== undefined);
  const given = [disconnect === true, error !== undefined, isAnswer].filter((isGiven) => isGiven).length;
  if (given > 1) refuse('must name one of disconnect, error, or status, fault, body and headers');
  if (given === 0 && (delayMs ?? truncateAt ?? dripMs) === undefined)
    refuse(`must name at least one of ${Object.keys(respondFields).join(', ')}`);
  if (fault !== undefined && answer.body !== undefined) refuse('must not name both fault and body');
  const names = Object.keys(answer.headers ?? {}).map((name) => name.toLowerCase());
  const ofConnection = names.find((name) =>
    /^(connection|content-length|transfer-encoding|trailer)$/.test(name),
  );
  if (ofConnection !== undefined) refuse(`must not have the header ${ofConnection}, which the server sends`);
  if (answer.status !== 304 && isRedirection(answer.status ?? 200) && !names.includes('location'))
    refuse(`must have headers with a location for the status ${answer.status}`);
});

const times = integer(1, 1_000_000_000).optional().meta({ description: 'Blank: always.' });

export const ruleFields = { match: matchFields, respond: respondFields, times };

const ruleSchema = z.strictObject({ match: matchSchema, respond: respondSchema, times });

export type Match = z.infer<typeof matchSchema>;
export type Respond = z.infer<typeof respondSchema>;
type NewRule = z.infer<typeof ruleSchema> & { readonly note?: string };

type ActiveRule = NewRule & { readonly id: string; hits: number };

export type RulesDump = { readonly list: readonly ActiveRule[]; readonly lastId: number };

/** A route of the server. Only that of SOAP calls has operations. */
export type KnownRoute = {
  readonly template: string;
  readonly methods: readonly string[];
  readonly soapOperations: readonly string[];
};

/** What the rules of this server may name. */
export type KnownParts = {
  readonly routes: readonly KnownRoute[];
  /** Of all versions that are installed or in the manifest. */
  readonly containers: readonly string[];
  readonly steps: ReturnType<typeof performedSteps>;
};

/** A container is named with one of these, or with none, which means its update. */
const workloadSteps = ['update', 'verify', 'revert'];

type PartsOfRequest = { readonly route?: string | undefined; readonly soapOperation?: string | undefined };

/** The parts that the server does not have. A typing error in a test must not pass unnoticed. */
export function findUnknownParts(
  { route, soapOperation }: PartsOfRequest,
  routes: readonly KnownRoute[],
): { readonly name: keyof PartsOfRequest; readonly message: string }[] {
  const operations = routes.flatMap(({ soapOperations }) => soapOperations);
  return [
    ...(soapOperation !== undefined && !operations.includes(soapOperation)
      ? [{ name: 'soapOperation' as const, message: `must be one of ${operations.join(', ')}` }]
      : []),
    ...(route !== undefined && !routes.some(({ template }) => isSameTemplate(template, route))
      ? [
          {
            name: 'route' as const,
            message:
              'must be a path template of openapi.json such as /admin/services/webhooks/{webhook}, or the path of the SOAP catalog',
          },
        ]
      : []),
  ];
}

/** Checks a rule in itself and against the server, and adds a note if it matches less than one may expect. */
export function ruleSchemaFor(known: () => KnownParts) {
  return ruleSchema
    .check(({ value: { match, respond }, issues }) => {
      const refuse = (path: string[], message: string) =>
        issues.push({ code: 'custom', input: undefined, path, message });
      const { routes, containers, steps } = known();
      for (const { name, message } of findUnknownParts(match, routes)) refuse(['match', name], message);
      if (match.container !== undefined && !containers.includes(match.container))
        refuse(['match', 'container'], `must be one of ${containers.join(', ')}`);
      if (match.container !== undefined && match.step !== undefined && !workloadSteps.includes(match.step))
        refuse(['match', 'step'], `must be one of ${workloadSteps.join(', ')} with a container`);
      if (match.step !== undefined && kindsWith(match.step, steps).length === 0)
        refuse(['match', 'step'], 'is in no plan of this server: see SIMULATED_STEP_TEMPLATES');
      const isOfRoute = ({ template }: KnownRoute) => isSameTemplate(template, match.route);
      const mayFault =
        match.soapOperation !== undefined ||
        routes.some((route) => isOfRoute(route) && route.soapOperations.length > 0);
      const isForRequests = [match.container, match.step, match.receiver].every((part) => part === undefined);
      if (!isForRequests && (respond.truncateAt ?? respond.dripMs) !== undefined)
        refuse(['respond'], 'must not name truncateAt or dripMs for a step or a receiver');
      if (respond.fault !== undefined && !mayFault)
        refuse(
          ['respond', 'fault'],
          'needs match.soapOperation, or match.route with the path of the SOAP catalog',
        );
    })
    .transform((rule) => ({ ...rule, ...noteOf(rule.match, known()) }));
}

function kindsWith(step: StepId, steps: KnownParts['steps']): string[] {
  return Object.entries(steps).flatMap(([kind, ids]) => (ids.has(step) ? [kind] : []));
}

/** A rule for another job or method would never match, and its test would test nothing. */
function noteOf({ step, route, method }: Match, { steps, routes }: KnownParts): { note?: string } {
  const ofRoute = routes.filter(({ template }) => isSameTemplate(template, route));
  const methods = [...new Set(ofRoute.flatMap((known) => known.methods))];
  if (route !== undefined && method !== undefined && !methods.includes(method))
    return { note: `No request matches: the methods of ${route} are ${methods.join(', ')}.` };
  if (step === undefined) return {};
  const kinds = kindsWith(step, steps);
  if (kinds.length === Object.keys(steps).length) return {};
  return { note: `Only a ${kinds.join(' or a ')} has the step ${step}.` };
}

/** The rules in the order of their creation. The first that matches counts a hit. */
export class FailureRules {
  #rules: ActiveRule[] = [];
  #lastId = 0;

  list(): readonly ActiveRule[] {
    return this.#rules;
  }

  add(rule: NewRule): ActiveRule {
    if (this.#rules.length >= maxRules)
      throw new ServiceError('conflict', 'There are too many rules: remove some first.');
    const added = { id: String((this.#lastId += 1)), ...rule, hits: 0 };
    this.#rules.push(added);
    return added;
  }

  remove(id: string): boolean {
    const before = this.#rules.length;
    this.#rules = this.#rules.filter((rule) => rule.id !== id);
    return this.#rules.length < before;
  }

  clear(): void {
    this.#rules = [];
  }

  dump(): RulesDump {
    return { list: this.#rules, lastId: this.#lastId };
  }

  load({ list, lastId }: RulesDump): void {
    this.#rules = list.map((rule) => ({ ...rule }));
    this.#lastId = lastId;
  }

  /** The first rule that matches and is not used up. */
  find(matches: (match: Match) => boolean): ActiveRule | undefined {
    return this.#rules.find(({ match, times = Infinity, hits }) => hits < times && matches(match));
  }

  take(matches: (match: Match) => boolean): Respond | undefined {
    const rule = this.find(matches);
    if (!rule) return undefined;
    rule.hits += 1;
    return rule.respond;
  }
}

/** The names of parameters do not matter. */
export function isSameTemplate(template: string | null, given: string | undefined): boolean {
  const shape = (path: string) => path.replace(/\{[^}]*/g, '{').replace(/(?<=.)\/$/, '');
  return template !== null && given !== undefined && shape(template) === shape(given);
}

function isOrigin(given: string): boolean {
  const url = URL.canParse(given) ? new URL(given) : undefined;
  return (
    url !== undefined &&
    /^https?:$/.test(url.protocol) &&
    url.origin === given.replace(/\/$/, '').toLowerCase()
  );
}
