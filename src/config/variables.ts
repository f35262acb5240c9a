// All environment variables: their groups, and the schema that checks each of them.
import * as z from 'zod';
import {
  access,
  addresses,
  catalog,
  console,
  database,
  identityProvider,
  logging,
  metrics,
  rest,
  testing,
  webhooks,
} from './server-variables.ts';
import { kubernetes, simulation, upgrades } from './upgrade-variables.ts';

/** By title, in the order of .env.example, which is generated from these groups. */
export const variableGroups = {
  'Addresses and paths': addresses,
  'SOAP catalog': catalog,
  'Sign-in and proxies': access,
  'Sign-in by an identity provider': identityProvider,
  Webhooks: webhooks,
  'Uploads and errors of the REST API': rest,
  Database: database,
  Upgrades: upgrades,
  'Upgrades on Kubernetes': kubernetes,
  'Simulated upgrades': simulation,
  'Test control': testing,
  Metrics: metrics,
  Console: console,
  Logging: logging,
};

export const variables = z.object({
  ...addresses,
  ...catalog,
  ...access,
  ...identityProvider,
  ...webhooks,
  ...rest,
  ...database,
  ...upgrades,
  ...kubernetes,
  ...simulation,
  ...testing,
  ...metrics,
  ...console,
  ...logging,
});

export function isVariable(name: string): boolean {
  return Object.hasOwn(variables.shape, name);
}
