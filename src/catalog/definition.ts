// What programs of this family know of a service besides its own fields: one JSON object, kept as it was given.
import type { Json } from '../lib/json.ts';

export type Definition = Readonly<Record<string, Json>>;

export const configuredStates = ['STARTED', 'STOPPED'] as const;

export type ConfiguredState = (typeof configuredStates)[number];

export const noDefinition: Definition = Object.freeze({});

export const maxDefinitionBytes = 64 * 1024;

/** The fields that a member of the object may stand for. */
export const fieldMembers = [
  'folderName',
  'serviceName',
  'type',
  'description',
  'capabilities',
  'parentType',
  'url',
  'access',
] as const;

/** The members that are fields of every service. They are not kept a second time. */
const ownMembers = new Set<string>([...fieldMembers, 'createdAt', 'updatedAt']);

/** What is kept of an object, and the state if the object names one. */
export function keepDefinition(object: Readonly<Record<string, unknown>>): {
  readonly definition: Definition;
  readonly configuredState?: ConfiguredState;
} {
  const kept = Object.entries(object).filter(([name]) => !ownMembers.has(name));
  const definition = kept.length === 0 ? noDefinition : (Object.fromEntries(kept) as Definition);
  const configuredState = configuredStates.find((state) => state === object.configuredState);
  return { definition, ...(configuredState && { configuredState }) };
}

type Defined = { readonly definition: Definition; readonly configuredState: ConfiguredState };

/** The fields that every service has. */
export function ownJson<T extends Defined>(service: T): Omit<T, keyof Defined> {
  const { definition: _definition, configuredState: _state, ...own } = service;
  return own;
}

/** All members. The state is the present one. */
export function serviceToJson<T extends Defined>(service: T): Omit<T, keyof Defined> & Definition {
  const { definition, configuredState } = service;
  const state = 'configuredState' in definition ? { configuredState } : {};
  return { ...ownJson(service), ...definition, ...state };
}
