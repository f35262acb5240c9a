// The stylesheet, script and icon of the pages, beneath the admin path under names that change with their contents.
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { createHash } from 'node:crypto';
import { methodNotAllowed } from '../errors.ts';
import type { Assets } from '../rest/html/layout.ts';

/** What is in the files of `site/assets/`. */
export type AssetFiles = { readonly stylesheet: string; readonly script: string; readonly icon: string };

const kinds: Readonly<Record<keyof AssetFiles, { file: string; type: string }>> = {
  stylesheet: { file: 'steward.css', type: 'text/css; charset=utf-8' },
  script: { file: 'steward.js', type: 'text/javascript; charset=utf-8' },
  icon: { file: 'steward.svg', type: 'image/svg+xml' },
};

const names = Object.keys(kinds) as (keyof AssetFiles)[];

export type MountedAssets = {
  /** Beneath the path of the public address. */
  locate: (linkBase: string) => Assets;
  mount: (http: FastifyInstance) => void;
};

export function createAssets(files: AssetFiles, prefix: string): MountedAssets {
  const versionOf = (name: keyof AssetFiles) =>
    createHash('sha256').update(files[name]).digest('hex').slice(0, 12);
  const versions = {
    stylesheet: versionOf('stylesheet'),
    script: versionOf('script'),
    icon: versionOf('icon'),
  };
  const pathOf = (name: keyof AssetFiles) => `${prefix}/assets/${kinds[name].file}`;

  function mountOne(http: FastifyInstance, name: keyof AssetFiles): void {
    const onRequest = (request: FastifyRequest, _reply: FastifyReply, done: () => void) => {
      request.routeLabel = pathOf(name);
      if (request.method !== 'GET' && request.method !== 'HEAD') {
        throw methodNotAllowed(request.method, ['GET', 'HEAD']);
      }
      done();
    };
    http.all(pathOf(name), { onRequest, config: { answersWhileClosing: true } }, (request, reply) => {
      // Another version's address, asked of this one while both serve, must not be kept with these contents.
      const isThis = (request.query as { v?: unknown }).v === versions[name];
      return reply
        .headers({
          'content-type': kinds[name].type,
          'cache-control': isThis ? 'public, max-age=31536000, immutable' : 'no-cache',
          'cross-origin-resource-policy': 'same-origin',
        })
        .send(files[name]);
    });
  }

  return {
    locate(linkBase) {
      const href = (name: keyof AssetFiles) => `${linkBase}${pathOf(name)}?v=${versions[name]}`;
      return { stylesheet: href('stylesheet'), script: href('script'), icon: href('icon') };
    },
    mount: (http) => names.forEach((name) => mountOne(http, name)),
  };
}
