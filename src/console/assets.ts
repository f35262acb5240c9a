// The stylesheet, script and icons of the pages. Their addresses change with their contents, so that browsers may keep them.
import { createHash } from 'node:crypto';
import type { FastifyInstance } from 'fastify';
import { SharedAnswers } from '../http/answers.ts';
import type { AssetHrefs } from './layout.ts';

export type AssetFiles = AssetHrefs;

type AssetName = keyof AssetFiles;

const kinds: Readonly<Record<AssetName, { file: string; type: string }>> = {
  stylesheet: { file: 'steward.css', type: 'text/css; charset=utf-8' },
  script: { file: 'steward.js', type: 'text/javascript; charset=utf-8' },
  tryScript: { file: 'try.js', type: 'text/javascript; charset=utf-8' },
  icon: { file: 'steward.svg', type: 'image/svg+xml' },
  attentionIcon: { file: 'attention.svg', type: 'image/svg+xml' },
  offlineIcon: { file: 'offline.svg', type: 'image/svg+xml' },
};

function mapAssets(valueOf: (name: AssetName) => string): Readonly<Record<AssetName, string>> {
  const names = Object.keys(kinds) as AssetName[];
  return Object.fromEntries(names.map((name) => [name, valueOf(name)])) as Record<AssetName, string>;
}

export class Assets {
  readonly #files: AssetFiles;
  readonly #prefix: string;
  readonly #answers = new SharedAnswers();
  readonly #versions: Readonly<Record<AssetName, string>>;

  constructor(files: AssetFiles, prefix: string) {
    this.#files = files;
    this.#prefix = prefix;
    const versionOf = (content: string) => createHash('sha256').update(content).digest('hex').slice(0, 12);
    this.#versions = mapAssets((name) => versionOf(files[name]));
  }

  hrefs(linkBase: string): Readonly<Record<AssetName, string>> {
    const href = (name: AssetName) => `${linkBase}${this.#path(name)}?v=${this.#versions[name]}`;
    return mapAssets(href);
  }

  register(app: FastifyInstance): void {
    for (const name of Object.keys(kinds) as AssetName[]) {
      const content = Buffer.from(this.#files[name]);
      app.route<{ Querystring: { v?: unknown } }>({
        method: ['GET', 'HEAD'],
        url: this.#path(name),
        config: { answersWhileClosing: true },
        handler: (request, reply) => {
          // During a rolling upgrade, a request for another version may arrive here. Browsers must not cache its answer.
          const isCurrent = request.query.v === this.#versions[name];
          void reply.headers({
            'content-type': kinds[name].type,
            'cache-control': isCurrent ? 'public, max-age=31536000, immutable' : 'no-cache',
            'cross-origin-resource-policy': 'same-origin',
          });
          return this.#answers.bodyFor(reply, [content], content);
        },
      });
    }
  }

  #path(name: AssetName): string {
    return `${this.#prefix}/assets/${kinds[name].file}`;
  }
}
