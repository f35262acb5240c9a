// The layers of the code: which files of src there are, and which layer each belongs to.
import { readdirSync } from 'node:fs';

/** The files of src, such as `webhooks/delivery.ts`. */
export const sources = readdirSync(new URL('../../src/', import.meta.url), {
  recursive: true,
  encoding: 'utf8',
})
  .filter((name) => name.endsWith('.ts'))
  .map((name) => name.replaceAll('\\', '/'));

/** From the bottom to the top. A file's layer follows from its folder and name alone. */
export const layers = ['rules', 'ports', 'services', 'protocols', 'edges', 'process'] as const;
export type Layer = (typeof layers)[number];

/** The first pattern that matches decides; everything else is a rule. */
const patterns: readonly [RegExp, Layer][] = [
  [
    /^(main|process|cli|steward|start|backends|app|services|mounts|config)\.ts$|^(commands|config)\//,
    'process',
  ],
  [/^control\/(?!control-client\.ts$)/, 'process'],
  [/^(http|rest|soap)\//, 'protocols'],
  [/(^|[/.])(rest|soap|fields|answers)\.ts$|\/pages\/|-file\.ts$/, 'edges'],
  [/^store\/(state|transaction)\.ts$/, 'rules'],
  [/^store\/([a-z]+-)?(store|queue)\.ts$|^runtime\.ts$|\/executor\.ts$/, 'ports'],
  [/^store\/|^tasks\.ts$|^lib\/async\.ts$|\/executors\//, 'services'],
  [
    /-(worker|runner|watcher|service|publisher|cache|client|limiter)\.ts$|\/(stats|resolver)\.ts$/,
    'services',
  ],
  [/-request\.ts$/, 'services'],
];

export function layerOf(name: string): Layer {
  if (name.startsWith('upgrades/executors/kubernetes/')) return 'services';
  return patterns.find(([pattern]) => pattern.test(name))?.[1] ?? 'rules';
}
