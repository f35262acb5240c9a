// The layers of the code: which files of src there are, and which layer each belongs to.
import { readdirSync } from 'node:fs';
import { posix } from 'node:path';

/** The files of src, such as `webhooks/queue/delivery.ts`. */
export const sources = readdirSync(new URL('../../src/', import.meta.url), {
  recursive: true,
  encoding: 'utf8',
})
  .filter((name) => name.endsWith('.ts'))
  .map((name) => name.replaceAll('\\', '/'));

/** From the bottom to the top. */
export const layers = ['lib', 'store', 'features', 'protocols', 'edges', 'process'] as const;
export type Layer = (typeof layers)[number];

const layersOfFolders: Readonly<Record<string, Layer>> = {
  lib: 'lib',
  store: 'store',
  http: 'protocols',
  soap: 'protocols',
  rest: 'protocols',
  console: 'protocols',
  config: 'process',
  app: 'process',
  commands: 'process',
  testing: 'process',
  '': 'process',
};

/** The first folder of the file. Empty for an entry point. */
export function folderOf(name: string): string {
  return name.includes('/') ? (name.split('/')[0] ?? '') : '';
}

/** The layer follows from the folder. The edges of a feature are its pages, and the files that its protocols name. */
export function layerOf(name: string): Layer {
  const layer = layersOfFolders[folderOf(name)];
  if (layer !== undefined) return layer;
  const isEdge = posix.dirname(name).endsWith('/pages') || /(^|[/.])(rest|soap)\.ts$/.test(name);
  return isEdge ? 'edges' : 'features';
}
