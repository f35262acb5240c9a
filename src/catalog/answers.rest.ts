// Schemas of the answers about the catalog.
import * as z from 'zod';
import { answerObject, time } from '../rest/answer.ts';
import { accesses } from './catalog.ts';

export const serviceAnswer = answerObject('Service', 'A service of the catalog.', {
  folderName: z.string().describe('The folder, or / for the root.'),
  serviceName: z.string(),
  type: z.string(),
  description: z.string(),
  capabilities: z.string().describe('Names separated by commas.'),
  parentType: z.string().describe('Empty for a service of its own.'),
  url: z
    .string()
    .nullable()
    .describe('The address of the service. Null: the catalog derives it from the name.'),
  access: z.enum(accesses).describe('Who sees the service.'),
  createdAt: time,
  updatedAt: time,
});

const contents = {
  folders: z.array(z.string()).describe('The names of the folders that the caller may see.'),
  services: z.array(serviceAnswer).describe('The services that the caller may see.'),
};

export const catalogAnswer = answerObject('Catalog', 'The root of the catalog.', {
  folderName: z.literal('/'),
  ...contents,
});

export const folderAnswer = answerObject('Folder', 'A folder of the catalog.', {
  folderName: z.string(),
  description: z.string(),
  ...contents,
  folders: z.array(z.string()).describe('Always empty: folders have one level.'),
});
