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
};

const respondSchema = z.strictObject(respondFields).check(({ value, issues }) => {
  const refuse = (message: string) => issues.push({ code: 'custom', input: value, message });
  const { status, fault, delayMs, disconnect, error } = value;
  const ways = [disconnect === true, error !== undefined, status !== undefined || fault !== undefined];
  const given = ways.filter((isGiven) => isGiven).length;
  if (given > 1) refuse('must name one of disconnect, error, or status and fault');
  if (given === 0 && delayMs === undefined)
    refuse('must name at least one of status, fault, delayMs, disconnect, error');
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
export type KnownRoute = { readonly template: string; readonly soapOperations: readonly string[] };

/** What the rules of this server may name. */
export type KnownParts = {
  readonly routes: readonly KnownRoute[];
  /** Of all versions that are installed or in the manifest. */
  readonly containers: readonly string[];
  readonly steps: ReturnType<typeof performedSteps>;
};

/** A container is named with one of these, or with none, which means its update. */
const workloadSteps = ['update', 'verify', 'revert'];

/** Checks a rule in itself and against the server, and adds a note if only some jobs have its step. */
export function ruleSchemaFor(known: () => KnownParts) {
  return ruleSchema
    .check(({ value: { match, respond }, issues }) => {
      const refuse = (path: string[], message: string) =>
        issues.push({ code: 'custom', input: undefined, path, message });
      const { routes, containers, steps } = known();
      const operations = routes.flatMap(({ soapOperations }) => soapOperations);
      const requireKnown = (name: 'soapOperation' | 'container', valid: readonly string[]) => {
        const given = match[name];
        if (given !== undefined && !valid.includes(given))
          refuse(['match', name], `must be one of ${valid.join(', ')}`);
      };
      requireKnown('soapOperation', operations);
      requireKnown('container', containers);
      if (match.container !== undefined && match.step !== undefined && !workloadSteps.includes(match.step))
        refuse(['match', 'step'], `must be one of ${workloadSteps.join(', ')} with a container`);
      if (match.step !== undefined && kindsWith(match.step, steps).length === 0)
        refuse(['match', 'step'], 'is in no plan of this server: see SIMULATED_STEP_TEMPLATES');
      const route = routes.find(({ template }) => isSameTemplate(template, match.route));
      if (match.route !== undefined && !route)
        refuse(
          ['match', 'route'],
          'must be a path template of openapi.json such as /admin/services/webhooks/{webhook}, or the path of the SOAP catalog',
        );
      const mayFault = match.soapOperation !== undefined || (route?.soapOperations.length ?? 0) > 0;
      if (respond.fault !== undefined && !mayFault)
        refuse(
          ['respond', 'fault'],
          'needs match.soapOperation, or match.route with the path of the SOAP catalog',
        );
    })
    .transform((rule) => ({ ...rule, ...noteOf(rule.match, known().steps) }));
}

function kindsWith(step: StepId, steps: KnownParts['steps']): string[] {
  return Object.entries(steps).flatMap(([kind, ids]) => (ids.has(step) ? [kind] : []));
}

/** A rule for another job would never match, and its test would test nothing. */
function noteOf({ step }: Match, steps: KnownParts['steps']): { note?: string } {
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
