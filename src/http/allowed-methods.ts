// The methods that a path answers, for 405. Fastify's own router knows only whether a method and a path match together.
import type { FastifyInstance } from 'fastify';
import FindMyWay from 'find-my-way';
import { maxParamLength } from './limits.ts';

const order = ['GET', 'HEAD', 'POST', 'PUT', 'DELETE'];

type Router = FindMyWay.Instance<FindMyWay.HTTPVersion.V1>;

export class AllowedMethods {
  readonly #methodsByUrl = new Map<string, Set<string>>();
  #router: Router | undefined;

  /** The hook sees only routes that are registered after it. */
  constructor(app: FastifyInstance) {
    app.addHook('onRoute', ({ url, method }) => this.#add(url, [method].flat()));
  }

  find(url: string): readonly string[] | undefined {
    const route = (this.#router ??= this.#createRouter()).find('GET', url);
    const methods = (route?.store as { methods: Set<string> } | undefined)?.methods;
    return methods && order.filter((method) => methods.has(method));
  }

  #add(url: string, added: readonly string[]): void {
    const methods = this.#methodsByUrl.get(url) ?? new Set<string>();
    this.#methodsByUrl.set(url, methods);
    for (const method of added) methods.add(method);
  }

  /** Takes several milliseconds, so it is done at the first path that no route has. */
  #createRouter(): Router {
    const router = FindMyWay({ ignoreTrailingSlash: true, maxParamLength });
    for (const [url, methods] of this.#methodsByUrl) router.on('GET', url, () => undefined, { methods });
    return router;
  }
}
