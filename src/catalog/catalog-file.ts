// CATALOG_FILE: the catalog a first start is loaded with; all its problems are listed together (contract 4).
import { z } from 'zod';
import type { Transaction } from '../store/transaction.ts';
import { toNfc, httpUrlRule, isHttpUrl, isXmlText } from '../lib/text.ts';
import {
  type Folder,
  type ServiceId,
  type ServiceTraits,
  accesses,
  catalogLoaded,
  createFolder,
  createService,
  folderNames,
  folders,
  longest,
  rootFolder,
  serviceNames,
  serviceTypes,
  services,
  tidyList,
} from './catalog.ts';

export type CatalogFile = {
  readonly folders: readonly Folder[];
  readonly services: readonly (ServiceId & ServiceTraits)[];
};

const named = ({ pattern, allowed }: { pattern: RegExp; allowed: string }) =>
  z
    .string(`must be ${allowed}`)
    .transform((value) => toNfc(value))
    .pipe(z.string().regex(pattern, `must be ${allowed}`));
const plainText = (most: number) =>
  z
    .string('must be text')
    .max(most, `must be at most ${most} characters`)
    .refine(isXmlText, 'must not contain control characters')
    .default('');
const type = z
  .string(`must be ${serviceTypes.allowed}`)
  .regex(serviceTypes.pattern, `must be ${serviceTypes.allowed}`);

const folderSchema = z.strictObject({
  folderName: named(folderNames),
  description: plainText(longest.description),
});
const serviceSchema = z.strictObject({
  folderName: z
    .literal(['', rootFolder])
    .transform(() => rootFolder)
    .or(named(folderNames))
    .default(rootFolder),
  serviceName: named(serviceNames),
  type,
  description: plainText(longest.description),
  capabilities: plainText(longest.capabilities).transform(tidyList),
  parentType: z.literal('').or(type).default(''),
  url: z
    .string(`must be ${httpUrlRule}`)
    .transform((value) => value.trim() || null)
    .refine((value) => value === null || isHttpUrl(value), `must be ${httpUrlRule}`)
    .nullable()
    .default(null),
  access: z.enum(accesses, `must be one of ${accesses.join(', ')}`).default('public'),
  // What the API shows beside the rest; a service that is loaded is new.
  createdAt: z.unknown().optional(),
  updatedAt: z.unknown().optional(),
});
const list = z.array(z.unknown(), 'must be an array').default([]);
const fileSchema = z.strictObject(
  { folders: list, services: list },
  'must be an object with the arrays folders and services',
);

export type CatalogFileResult = { readonly catalog: CatalogFile } | { readonly problems: readonly string[] };

/** All problems of a file are told at once, wherever they are. */
export function readCatalogFile(content: string): CatalogFileResult {
  let json: unknown;
  try {
    json = JSON.parse(content.replace(/^\uFEFF/, ''));
  } catch (error) {
    return { problems: [`is not JSON: ${(error as Error).message}.`] };
  }
  const file = fileSchema.safeParse(json);
  if (!file.success) return { problems: file.error.issues.map((issue) => formatIssue(issue, '')) };
  const problems: string[] = [];
  const folderList = readEntries(file.data.folders, folderSchema, 'folders', problems);
  const serviceList = readEntries(file.data.services, serviceSchema, 'services', problems).map(
    ({ index, entry }) => {
      const { createdAt, updatedAt, ...service } = entry;
      return { index, entry: service };
    },
  );
  problems.push(
    ...repeats(folderList, folders.keyOf, 'folders'),
    ...repeats(
      serviceList,
      (service) => services.keyOf({ ...service, createdAt: 0, updatedAt: 0 }),
      'services',
    ),
  );

  const known = new Map(folderList.map(({ entry }) => [folders.keyOf(entry), entry]));
  for (const { index, entry } of serviceList) {
    if (entry.folderName === rootFolder) continue;
    const key = entry.folderName.toLowerCase();
    const folder = known.get(key) ?? { folderName: entry.folderName, description: '' };
    known.set(key, folder);
    if (folder.folderName !== entry.folderName) {
      problems.push(`services[${index}].folderName: differs from ${folder.folderName} only in case.`);
    }
  }
  if (problems.length > 0) return { problems };
  return { catalog: { folders: [...known.values()], services: serviceList.map(({ entry }) => entry) } };
}

type Placed<T> = { readonly index: number; readonly entry: T };

function readEntries<T>(
  entries: readonly unknown[],
  schema: z.ZodType<T>,
  where: string,
  problems: string[],
): Placed<T>[] {
  return entries.flatMap((given, index) => {
    const parsed = schema.safeParse(given);
    if (parsed.success) return [{ index, entry: parsed.data }];
    problems.push(...parsed.error.issues.map((issue) => formatIssue(issue, `${where}[${index}]`)));
    return [];
  });
}

function repeats<T>(entries: readonly Placed<T>[], keyOf: (entry: T) => string, where: string): string[] {
  const firsts = new Map<string, number>();
  return entries.flatMap(({ index, entry }) => {
    const first = firsts.get(keyOf(entry));
    if (first !== undefined)
      return [`${where}[${index}]: has the same name as ${where}[${first}] but for case.`];
    firsts.set(keyOf(entry), index);
    return [];
  });
}

function formatIssue({ path, message }: z.core.$ZodIssue, where: string): string {
  const place = `${where}.${path.map(String).join('.')}`.replace(/^\.|\.$/g, '') || 'The file';
  return `${place}: ${message}.`;
}

/** Loads a catalog into a store that has never had one. */
export function loadCatalog(transaction: Transaction, catalog: CatalogFile, at: number): void {
  if (transaction.read(catalogLoaded)) return;
  for (const folder of catalog.folders) createFolder(transaction, folder);
  for (const service of catalog.services) createService(transaction, service, service, at);
  transaction.write(catalogLoaded, true);
}
