// CATALOG_FILE: the catalog a first start is loaded with; all its problems are listed together (contract 4).
import { z } from 'zod';
import type { Transaction } from '../store/transaction.ts';
import { httpUrlRule, isHttpUrl, isXmlText } from '../text.ts';
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
    .string()
    .transform((value) => value.normalize('NFC'))
    .pipe(z.string().regex(pattern, `must be ${allowed}`));
const plainText = (most: number) =>
  z
    .string()
    .max(most, `must be at most ${most} characters`)
    .refine(isXmlText, 'must not contain control characters');

const fileSchema = z.strictObject({
  folders: z
    .array(
      z.strictObject({
        folderName: named(folderNames),
        description: plainText(longest.description).default(''),
      }),
    )
    .default([]),
  services: z
    .array(
      z.strictObject({
        folderName: z
          .literal(['', rootFolder])
          .transform(() => rootFolder)
          .or(named(folderNames))
          .default(rootFolder),
        serviceName: named(serviceNames),
        type: z.string().regex(serviceTypes.pattern, `must be ${serviceTypes.allowed}`),
        description: plainText(longest.description).default(''),
        capabilities: plainText(longest.capabilities).transform(tidyList).default(''),
        parentType: z
          .literal('')
          .or(z.string().regex(serviceTypes.pattern, `must be ${serviceTypes.allowed}`))
          .default(''),
        url: z.string().refine(isHttpUrl, `must be ${httpUrlRule}`).nullable().default(null),
        access: z.enum(accesses, `must be one of ${accesses.join(', ')}`).default('public'),
      }),
    )
    .default([]),
});

export type CatalogFileResult = { readonly catalog: CatalogFile } | { readonly problems: readonly string[] };

export function readCatalogFile(content: string): CatalogFileResult {
  let json: unknown;
  try {
    json = JSON.parse(content);
  } catch (error) {
    return { problems: [`is not JSON: ${(error as Error).message}.`] };
  }
  const parsed = fileSchema.safeParse(json);
  if (!parsed.success) return { problems: parsed.error.issues.map(describeIssue) };
  const named = [
    ...parsed.data.folders,
    ...parsed.data.services.filter(({ folderName }) => folderName !== rootFolder),
  ];
  const known = new Map<string, Folder>();
  for (const { folderName, description } of named.map(asFolder)) {
    const key = folderName.toLowerCase();
    if (!known.has(key)) known.set(key, { folderName, description });
  }
  const problems = [
    ...repeats(parsed.data.folders.map(folders.keyOf), 'folders'),
    ...repeats(
      parsed.data.services.map((service) => services.keyOf({ ...service, createdAt: 0, updatedAt: 0 })),
      'services',
    ),
    ...parsed.data.services.flatMap(({ folderName }, index) => {
      const folder = known.get(folderName.toLowerCase());
      const differs = folder !== undefined && folder.folderName !== folderName;
      return differs
        ? [`services[${index}].folderName: differs from ${folder.folderName} only in case.`]
        : [];
    }),
  ];
  if (problems.length > 0) return { problems };
  return { catalog: { folders: [...known.values()], services: parsed.data.services } };
}

/** A folder that only a service names is made without a description. */
function asFolder(entry: { folderName: string } & Partial<ServiceId> & { description: string }): Folder {
  return {
    folderName: entry.folderName,
    description: entry.serviceName === undefined ? entry.description : '',
  };
}

function repeats(keys: readonly string[], list: string): string[] {
  const firsts = new Map<string, number>();
  return keys.flatMap((key, index) => {
    const first = firsts.get(key);
    if (first !== undefined)
      return [`${list}[${index}]: has the same name as ${list}[${first}] but for case.`];
    firsts.set(key, index);
    return [];
  });
}

function describeIssue({ path, message }: z.core.$ZodIssue): string {
  const where = path.map((part) => (typeof part === 'number' ? `[${part}]` : `.${String(part)}`)).join('');
  return `${where.replace(/^\./, '') || 'The file'}: ${message}.`;
}

/** Loads a catalog into a store that has never had one. */
export function loadCatalog(transaction: Transaction, catalog: CatalogFile, at: number): void {
  if (transaction.read(catalogLoaded)) return;
  for (const folder of catalog.folders) createFolder(transaction, folder);
  for (const { folderName, serviceName, type, ...traits } of catalog.services) {
    createService(transaction, { folderName, serviceName, type }, traits, at);
  }
  transaction.write(catalogLoaded, true);
}
