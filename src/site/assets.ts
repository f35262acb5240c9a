// The stylesheet, script and icon of the pages, beneath the admin path under names that change with their contents.
import type { FastifyInstance } from 'fastify';
import { createHash } from 'node:crypto';
import type { Assets } from '../rest/frame.ts';

/** What is in the files of `site/assets/`. */
export type AssetFiles = { readonly stylesheet: string; readonly script: string; readonly icon: string };

const kinds: Readonly<Record<keyof AssetFiles, { file: string; type: string }>> = {
  stylesheet: { file: 'steward.css', type: 'text/css; charset=utf-8' },
  script: { file: 'steward.js', type: 'text/javascript; charset=utf-8' },
  icon: { file: 'steward.svg', type: 'image/svg+xml' },
};

const names = Object.keys(kinds) as (keyof AssetFiles)[];

function versionOf(content: string): string {
  return createHash('sha256').update(content).digest('hex').slice(0, 12);
}

export function locateAssets(files: AssetFiles, base: string): Assets {
  const href = (name: keyof AssetFiles) => `${base}/assets/${kinds[name].file}?v=${versionOf(files[name])}`;
  return { stylesheet: href('stylesheet'), script: href('script'), icon: href('icon') };
}

export function mountAssets(http: FastifyInstance, files: AssetFiles, prefix: string): void {
  for (const name of names) {
    const path = `${prefix}/assets/${kinds[name].file}`;
    http.route({
      method: ['GET', 'HEAD'],
      url: path,
      onRequest: (request, _reply, done) => {
        request.routeLabel = path;
        done();
      },
      handler: (_request, reply) =>
        reply
          .headers({
            'content-type': kinds[name].type,
            'cache-control': 'public, max-age=31536000, immutable',
            'x-content-type-options': 'nosniff',
            'cross-origin-resource-policy': 'same-origin',
          })
          .send(files[name]),
    });
  }
}
