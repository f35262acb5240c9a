// REST resources of the catalog for clients: names and types of the services that the caller may see.
import * as z from 'zod';
import type { Caller } from '../lib/caller.ts';
import type { SharedJson } from '../lib/json.ts';
import { answerObject } from '../rest/answer.ts';
import { type Resource, items, resource } from '../rest/resource.ts';
import type { CatalogCache } from './catalog-cache.ts';
import { audienceOf, folderOrServiceNotFound, fullNameOf, isStarted, rootFolder } from './catalog.ts';

type DirectoryOptions = {
  readonly catalogCache: CatalogCache;
  readonly requireTokens: boolean;
  readonly currentVersion: () => number | null;
};

const directoryAnswer = answerObject('Directory', 'Folders and services of the catalog, for clients.', {
  currentVersion: z
    .number()
    .nullable()
    .describe('The installed version as a number: 10.91 for 10.9.1. Null: it is not known.'),
  folders: z.array(z.string()).describe('The folders that the caller may see. Empty in a folder.'),
  services: z.array(
    z.strictObject({
      name: z.string().describe('Folder/Name, or Name in the root.'),
      type: z.string(),
    }),
  ),
});

export function directoryResource(options: DirectoryOptions): Resource {
  const { catalogCache, requireTokens } = options;
  const access = requireTokens ? 'member' : 'optional';
  const folder = resource<string>({
    title: 'Directory of a folder',
    titleOf: (folderName) => folderName,
    description: 'The services of a folder that the caller may see.',
    access,
    answer: directoryAnswer,
    read: ({ subject, caller }) => list(options, subject, caller),
  });
  return resource({
    title: 'Directory',
    description: 'The folders, and the services of the root, that the caller may see.',
    access,
    answer: directoryAnswer,
    read: ({ caller }) => list(options, rootFolder, caller),
    items: [
      items<unknown, string>({
        param: 'folder',
        find: (_root, name, caller) => {
          const { byFolder } = catalogCache.listing(audienceOf(caller));
          if (name === rootFolder || !byFolder.has(name)) throw folderOrServiceNotFound();
          return name;
        },
        resource: folder,
      }),
    ],
  });
}

function list(
  { catalogCache, currentVersion }: DirectoryOptions,
  folderName: string,
  caller: Caller,
): SharedJson {
  const audience = audienceOf(caller);
  const version = currentVersion();
  const listing = () => catalogCache.listing(audience);
  return catalogCache.servicesJson(
    `directory ${version} ${audience} ${folderName}`,
    () => ({ currentVersion: version, folders: folderName === rootFolder ? listing().folders : [] }),
    () => {
      const started = listing().byFolder.get(folderName)?.filter(isStarted) ?? [];
      return started.map((service) => ({ name: fullNameOf(service), type: service.type }));
    },
  );
}
