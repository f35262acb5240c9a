// A server that tests control: it can replace its app by a new one in the same process, at the same address.
//
// `reset` and `restore` never change an app that runs. They end its attempts, steps and waiting requests, and
// create a new app with a new store, clock and executor: empty for `reset`, with the state of a snapshot for
// `restore`. So nothing of the old state can remain. Requests that arrive meanwhile wait. The first app keeps the
// listening socket; `dispatch` passes each request to the control API or to the current app.
import type { FastifyInstance } from 'fastify';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type App, createApp } from '../app/app.ts';
import type { AppOptions } from '../app/start.ts';
import { type MemoryStore, createMemoryStore } from '../app/stores/memory-store.ts';
import { tables } from '../app/backends.ts';
import { SignInLimit } from '../auth/sign-in-limit.ts';
import { hashToken, tokens } from '../auth/token.ts';
import { users } from '../auth/user.ts';
import { limitPipelines } from '../http/request-end.ts';
import { createMutex } from '../lib/async.ts';
import { ServiceError } from '../lib/errors.ts';
import type { Runtime } from '../lib/runtime.ts';
import type { Store } from '../store/store.ts';
import { createSimulatedExecutor } from '../upgrades/executors/simulated.ts';
import { performedSteps } from '../upgrades/planning/plan.ts';
import { simulatedPerformers } from '../upgrades/executors/steps.ts';
import { currentManifest, deployment, installedVersions } from '../upgrades/versions/deployment.ts';
import { ControlClock } from './clock.ts';
import { createFailingClient, createFailingExecutor } from './failing-ports.ts';
import { addControlHooks } from './hooks.ts';
import { maxDate } from './input.ts';
import { Journal } from './journal.ts';
import { type Draws, seededRandom } from './random.ts';
import { FailureRules, type KnownParts, type KnownRoute } from './rule.ts';
import { type SnapshotState, readSnapshot, writeSnapshot } from './snapshot.ts';

/** What `reset` and `restore` replace. */
type World = {
  readonly app: App;
  readonly store: MemoryStore;
  readonly runtime: Runtime;
  readonly clock: ControlClock;
  readonly signInLimit: SignInLimit;
  readonly draws: Draws;
  readonly simulatedFailures: Map<string, number>;
  readonly routes: readonly KnownRoute[];
  readonly ended: AbortController;
};

export class ControlledServer {
  readonly rules = new FailureRules();
  readonly journal = new Journal();
  readonly options: AppOptions;
  readonly #startedAt: number;
  readonly #exclusive = createMutex();
  #adminToken: string | undefined;
  #first: World | undefined;
  #current: World | undefined;
  /** Resolves when the next app is ready. Undefined: the current one is. */
  #replacing: Promise<void> | undefined;

  /** `createControl` builds the control API. */
  static async start(
    options: AppOptions,
    createControl: (server: ControlledServer) => Promise<FastifyInstance>,
  ): Promise<ControlledServer> {
    const server = new ControlledServer(options);
    server.#first = await server.#createWorld();
    server.#current = server.#first;
    server.#dispatch(await createControl(server));
    return server;
  }

  private constructor(options: AppOptions) {
    this.options = options;
    this.#startedAt = options.runtime.now();
  }

  /** The app that listens and closes; its other parts are those of the current app. */
  get app(): App {
    const { app } = this.#world;
    return {
      ...app,
      http: this.#listener.http,
      issueAdminToken: () => this.#issueAdminToken(),
      close: () => this.close(),
    };
  }

  get clock(): ControlClock {
    return this.#world.clock;
  }

  get store(): Store {
    return this.#world.store;
  }

  get known(): KnownParts {
    const { routes, store } = this.#world;
    const steps = performedSteps(simulatedPerformers(this.options.config.SIMULATED_STEP_TEMPLATES));
    const versions = [...currentManifest(store), ...installedVersions(store.read(deployment))];
    const containers = versions.flatMap((version) => [...version.containers, ...version.newContainers]);
    return { routes, steps, containers: [...new Set(containers.map(({ name }) => name.toUpperCase()))] };
  }

  advanceTo(target: number): Promise<void> {
    return this.#exclusive(async () => {
      const { clock, ended } = this.#world;
      await clock.advanceTo(target, ended.signal);
    });
  }

  reset(): Promise<void> {
    return this.#replace(() => {
      this.rules.load({ list: [], lastId: 0 });
      this.journal.clear();
      return this.#createWorld();
    });
  }

  snapshot(): string {
    const { store, clock, draws, simulatedFailures, signInLimit } = this.#world;
    return writeSnapshot(this.options.version, {
      clock: clock.dump(),
      draws,
      simulatedFailures: Object.fromEntries(
        [...simulatedFailures].map(([name, times]) => [name, Number.isFinite(times) ? times : null]),
      ),
      rules: this.rules.dump(),
      signIns: signInLimit.dump(),
      requests: this.journal.dump(),
      store: store.dump(),
    });
  }

  async restore(given: unknown): Promise<void> {
    const state = readSnapshot(this.options.version, given);
    await this.#replace(() => {
      this.rules.load(state.rules);
      this.journal.load(state.requests);
      return this.#createWorld(state);
    });
  }

  async close(): Promise<void> {
    const { app, clock, ended } = this.#world;
    ended.abort();
    clock.stop();
    await Promise.all([...new Set([app, this.#listener])].map((each) => each.close()));
  }

  get #world(): World {
    if (!this.#current) throw new Error('The server has not started.');
    return this.#current;
  }

  get #listener(): App {
    return (this.#first ?? this.#world).app;
  }

  async #replace(create: () => Promise<World>): Promise<void> {
    // Attempts end too: an advance of the clock may wait for a receiver that does not answer.
    this.#world.ended.abort(
      new ServiceError('conflict', 'The server was reset or restored while the clock advanced.'),
    );
    await this.#exclusive(() => {
      const replacing = this.#endAndCreate(create).finally(() => (this.#replacing = undefined));
      this.#replacing = replacing.catch(() => undefined);
      return replacing;
    });
  }

  async #endAndCreate(create: () => Promise<World>): Promise<void> {
    const { app, clock } = this.#world;
    clock.stop();
    await app.stop();
    this.#current = await create();
  }

  async #createWorld(from?: SnapshotState): Promise<World> {
    const { config, logger, httpClient, adminHash } = this.options;
    // The clock stands until the app is complete, so that regular tasks sleep until the same moments, and the times in
    // the state after a reset are those of the start.
    const { advancedMs, frozenAt } = from?.clock ?? { advancedMs: 0, frozenAt: null };
    const createdAt = from ? this.options.runtime.now() + advancedMs : this.#startedAt;
    const clock = new ControlClock(this.options.runtime, { advancedMs, frozenAt: frozenAt ?? createdAt });
    const draws: Draws = { ids: 0, secrets: 0 };
    const random = config.SEED === undefined ? this.options.runtime : seededRandom(config.SEED, draws);
    const runtime: Runtime = {
      ...random,
      now: clock.now,
      // Receivers refuse a signature of another time. SEED promises the same bytes under a frozen clock.
      ...(config.SEED === undefined && { timeOfDay: this.options.runtime.now }),
      elapsed: clock.now,
      sleep: clock.sleep,
      yieldToEventLoop: clock.yieldToEventLoop,
      startTimeout: clock.startTimeout,
    };
    const store = createMemoryStore({
      retention: {
        deliveries: { history: config.WEBHOOK_HISTORY, recoverable: config.WEBHOOK_RECOVERABLE },
        jobs: config.JOB_HISTORY,
      },
      maxEventIds: config.MAX_EVENT_IDS,
      since: createdAt,
    });
    if (from) store.load(from.store, tables);
    const simulatedFailures = from ? failuresOf(from) : new Map(config.SIMULATED_FAILURES);
    const executor = createSimulatedExecutor({
      runtime,
      stepMs: config.UPGRADE_STEP_MS,
      failures: simulatedFailures,
      performers: simulatedPerformers(config.SIMULATED_STEP_TEMPLATES),
    });
    const signInLimit = new SignInLimit();
    if (from) signInLimit.load(from.signIns);
    const routes: KnownRoute[] = [];
    const ended = new AbortController();
    const app = await createApp({
      ...this.options,
      config: { ...config, PORT: this.#port() },
      store,
      runtime,
      httpClient: createFailingClient({
        client: httpClient,
        clock,
        rules: this.rules,
        real: this.options.runtime,
        ended: ended.signal,
      }),
      executor: createFailingExecutor({ executor, rules: this.rules, runtime }),
      adminHash,
      isRestored: from !== undefined,
      signInLimit,
      extend: (http) =>
        addControlHooks(http, {
          clock,
          rules: this.rules,
          journal: this.journal,
          catalogPath: config.CATALOG_PATH,
          catalogNamespace: config.CATALOG_NAMESPACE,
          real: this.options.runtime,
          ended: ended.signal,
          onRoute: (route) => routes.push(route),
        }),
    });
    if (this.#adminToken !== undefined) {
      // The first app has drawn the token here, so later ones draw a secret too.
      runtime.newSecret(32);
      await this.#addAdminToken(store, runtime, this.#adminToken);
    }
    if (from) Object.assign(draws, from.draws);
    clock.setFrozen(frozenAt !== null);
    logger.debug({ restored: from !== undefined }, 'the controlled server is ready');
    return { app, store, runtime, clock, signInLimit, draws, simulatedFailures, routes, ended };
  }

  #port(): number {
    const address = this.#first?.app.http.server.address() as AddressInfo | null | undefined;
    return address?.port ?? this.options.config.PORT;
  }

  async #issueAdminToken(): Promise<string> {
    const { store, runtime } = this.#world;
    this.#adminToken ??= runtime.newSecret(32).toString('base64url');
    await this.#addAdminToken(store, runtime, this.#adminToken);
    return this.#adminToken;
  }

  /**
   * The token survives `reset`, and the restore of a snapshot of another process: a fixture from a file would lock the
   * test out otherwise. It does not expire, so that a test may advance the clock by any time.
   */
  async #addAdminToken(store: MemoryStore, { newId }: Runtime, token: string): Promise<void> {
    const id = newId();
    const hash = hashToken(token);
    const user = store.get(users, this.options.config.ADMIN_USERNAME.toLowerCase());
    if (!user || store.get(tokens, hash)) return;
    const added = {
      hash,
      id,
      username: user.username,
      createdAt: this.#startedAt,
      expires: maxDate,
      binding: null,
      address: null,
      userAgent: null,
      lastUsedAt: this.#startedAt,
    };
    await store.update((transaction) => transaction.put(tokens, added));
  }

  #dispatch(control: FastifyInstance): void {
    const { server } = this.#listener.http;
    const pass = (request: IncomingMessage, response: ServerResponse): void => {
      if (isControlPath(request.url ?? '')) control.routing(request, response);
      else if (this.#replacing) void this.#replacing.then(() => pass(request, response));
      else this.#world.app.http.routing(request, response);
    };
    // Fastify has attached the first app to the socket.
    server.removeAllListeners('request');
    server.on('request', limitPipelines(pass));
  }
}

function isControlPath(url: string): boolean {
  return /^\/control(?:[/?#]|$)/.test(url);
}

function failuresOf({ simulatedFailures }: SnapshotState): Map<string, number> {
  return new Map(Object.entries(simulatedFailures).map(([name, times]) => [name, times ?? Infinity]));
}
