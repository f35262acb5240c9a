// Reads CATALOG_FILE, the catalog of a first start, and lists all its problems at once.
import * as z from 'zod';
import {
  type Folder,
  type InitialCatalog,
  type ServiceId,
  folders,
  keyOfService,
  rootFolder,
} from '../catalog/catalog.ts';
import { keepDefinition, maxDefinitionBytes, noDefinition } from '../catalog/definition.ts';
import { fileServiceFields, folderFields } from '../catalog/fields.rest.ts';
import { type Problem, problemsOf } from '../lib/errors.ts';
import { isJsonObject } from '../lib/json.ts';
import { truncate } from '../lib/text.ts';
import { type Fields, type Values, readField } from '../rest/fields.ts';

type CatalogFileResult = { readonly catalog: InitialCatalog } | { readonly problems: readonly Problem[] };

const list = z.array(z.unknown(), 'must be an array').default([]);
const fileSchema = z.strictObject(
  { folders: list, services: list },
  'must be an object with the arrays folders and services',
);

export function readCatalogFile(content: string): CatalogFileResult {
  let json: unknown;
  try {
    json = JSON.parse(content.replace(/^\uFEFF/, ''));
  } catch (error) {
    return { problems: [{ message: `is not JSON: ${(error as Error).message}.` }] };
  }
  const file = fileSchema.safeParse(json);
  if (!file.success) return { problems: file.error.issues.map(toProblem) };
  const folderEntries = readEntries('folders', file.data.folders, folderFields());
  const serviceEntries = readEntries('services', file.data.services, fileServiceFields, keepMembers);
  const { allFolders, problems } = addMissingFolders(folderEntries.valid, serviceEntries.valid);
  const allProblems = [
    ...folderEntries.problems,
    ...serviceEntries.problems,
    ...repeatedNames('folders', folderEntries.valid, folders.keyOf),
    ...repeatedNames('services', serviceEntries.valid, keyOfService),
    ...problems,
  ];
  if (allProblems.length > 0) return { problems: allProblems };
  return { catalog: { folders: allFolders, services: serviceEntries.valid.map(({ values }) => values) } };
}

/** What becomes of the members that are no fields. */
type KeepMembers = (entry: Readonly<Record<string, unknown>>) => object | { readonly problem: string };

const keepMembers: KeepMembers = (entry) => {
  const kept = keepDefinition(entry);
  if (kept.definition === noDefinition) return {};
  const isTooLarge = Buffer.byteLength(JSON.stringify(kept.definition)) > maxDefinitionBytes;
  return isTooLarge ? { problem: `has other members of more than ${maxDefinitionBytes} bytes.` } : kept;
};

type Entry<T> = { readonly index: number; readonly values: T };

function readEntries<F extends Fields>(
  listName: string,
  entries: readonly unknown[],
  fields: F,
  keep?: KeepMembers,
): { valid: Entry<Values<F>>[]; problems: Problem[] } {
  const valid: Entry<Values<F>>[] = [];
  const problems: Problem[] = [];
  for (const [index, entry] of entries.entries()) {
    const read = readEntry(`${listName}[${index}]`, entry, fields, keep);
    if ('problems' in read) problems.push(...read.problems);
    else valid.push({ index, values: read.values });
  }
  return { valid, problems };
}

function readEntry<F extends Fields>(
  path: string,
  entry: unknown,
  fields: F,
  keep: KeepMembers | undefined,
): { values: Values<F> } | { problems: Problem[] } {
  if (!isJsonObject(entry)) return { problems: [{ field: path, message: 'must be an object.' }] };
  const problems: Problem[] = [];
  const values: Record<string, unknown> = {};
  for (const [name, field] of Object.entries(fields)) {
    const given = entry[name];
    // The REST API returns null for a service without an address.
    const raw = name === 'url' && given === null ? undefined : given;
    const parsed =
      raw === undefined || typeof raw === 'string' ? readField(field, raw) : { problems: ['must be text.'] };
    if ('problems' in parsed) problems.push(...problemsOf(`${path}.${name}`, parsed.problems));
    else values[name] = parsed.value;
  }
  if (keep) {
    const kept = keep(entry);
    if ('problem' in kept) problems.push({ field: path, message: kept.problem });
    return problems.length > 0 ? { problems } : { values: { ...values, ...kept } as unknown as Values<F> };
  }
  for (const key of Object.keys(entry)) {
    if (Object.hasOwn(fields, key)) continue;
    problems.push({ field: path, message: `has the unknown key ${JSON.stringify(truncate(key))}.` });
  }
  return problems.length > 0 ? { problems } : { values: values as Values<F> };
}

function repeatedNames<T>(
  listName: string,
  entries: readonly Entry<T>[],
  keyOf: (values: T) => string,
): Problem[] {
  const firsts = new Map<string, number>();
  const problems: Problem[] = [];
  for (const { index, values } of entries) {
    const key = keyOf(values);
    const first = firsts.get(key);
    if (first === undefined) firsts.set(key, index);
    else {
      const message = `has the same name as ${listName}[${first}], ignoring case.`;
      problems.push({ field: `${listName}[${index}]`, message });
    }
  }
  return problems;
}

function addMissingFolders(
  folderEntries: readonly Entry<Folder>[],
  serviceEntries: readonly Entry<ServiceId>[],
): { allFolders: Folder[]; problems: Problem[] } {
  const byKey = new Map(folderEntries.map(({ values }) => [folders.keyOf(values), values]));
  const problems: Problem[] = [];
  for (const { index, values } of serviceEntries) {
    if (values.folderName === rootFolder) continue;
    const named: Folder = { folderName: values.folderName, description: '' };
    const folder = byKey.get(folders.keyOf(named)) ?? named;
    byKey.set(folders.keyOf(named), folder);
    if (folder.folderName !== values.folderName) {
      const message = `differs from ${folder.folderName} only in case.`;
      problems.push({ field: `services[${index}].folderName`, message });
    }
  }
  return { allFolders: [...byKey.values()], problems };
}

function toProblem({ path, message }: z.core.$ZodIssue): Problem {
  return { ...(path.length > 0 && { field: path.map(String).join('.') }), message: `${message}.` };
}
