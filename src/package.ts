// The module of the package: starts Steward inside another program, such as a test.
import { startServer } from './app/start.ts';
import { isVariable } from './config/variables.ts';
import { type StewardControl, createControlClient } from './testing/control-client.ts';
import { startControlled } from './testing/routes.ts';

export type {
  Clock,
  ClockChange,
  FailureRule,
  JournalEntry,
  JournalMessage,
  NewFailureRule,
  RequestFilter,
  StewardControl,
} from './testing/control-client.ts';

export type { ErrorKind } from './lib/errors.ts';

export type StewardOptions = {
  /**
   * Variables such as `{ REQUIRE_TOKENS: 'true' }`. The environment of the process and `.env` are not read, because a
   * test must not depend on them. Other defaults than those of the process: `PORT` is 0, `LOG_LEVEL` silent, and
   * `TEST_CONTROL` true unless `STORE_URL` or `UPGRADE_EXECUTOR=kubernetes` is given. Test control of a server that is
   * not for this machine only, such as one with a `PUBLIC_URL` of another host, requires `TEST_CONTROL_TOKEN`.
   */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** The first catalog, in the format of CATALOG_FILE. Default: that file, or a built-in sample. */
  readonly catalog?: StewardCatalog;
  /** The versions, in the format of MANIFEST_FILE. Default: that file, or a built-in sample. */
  readonly manifest?: readonly object[] | { readonly versions: readonly object[] };
  /** What is installed at first, as INSTALLED_VERSION: the id of a version, or a version and build. */
  readonly installedVersion?: string;
};

export type StewardCatalog = {
  readonly folders?: readonly { readonly folderName: string; readonly description?: string }[];
  readonly services?: readonly {
    /** Absent: the root. */
    readonly folderName?: string;
    readonly serviceName: string;
    readonly type: string;
    readonly description?: string;
    readonly capabilities?: string;
    readonly parentType?: string;
    readonly url?: string | null;
    readonly access?: 'public' | 'organization' | 'administrators';
    /** Kept and returned, as those of a service that is created. */
    readonly [member: string]: unknown;
  }[];
};

export type Steward = {
  /** The address that the server listens on, such as `http://127.0.0.1:49152`. */
  readonly url: string;
  /** A token of the first administrator that does not expire. */
  readonly adminToken: string;
  /** The password of the first administrator. Undefined if the database had an administrator already. */
  readonly adminPassword: string | undefined;
  /** The test control API. Without TEST_CONTROL every call fails. */
  readonly control: StewardControl;
  /** Stops the server. May be called more than once. */
  stop(): Promise<void>;
};

export async function startSteward(options: StewardOptions = {}): Promise<Steward> {
  const { env = {}, catalog, manifest, installedVersion } = options;
  const unknown = Object.keys(env).filter((name) => !isVariable(name));
  if (unknown.length > 0) throw new Error(`Steward has no variable ${unknown.join(', ')}.`);
  const server = await startServer({
    env: { ...defaultsFor(env), ...env, ...(installedVersion && { INSTALLED_VERSION: installedVersion }) },
    catalogText: catalog && JSON.stringify(catalog),
    manifestText: manifest && JSON.stringify(manifest),
    createLogger: async ({ LOG_LEVEL: level }) => (await import('pino')).pino({ level }),
    startControlled,
    issueAdminToken: true,
  });
  const url = reachable(server.address);
  return {
    url,
    adminToken: server.adminToken,
    adminPassword: server.adminPassword,
    control: createControlClient({
      address: url,
      token: env.TEST_CONTROL_TOKEN,
      disabled: server.config.TEST_CONTROL
        ? undefined
        : 'Test control is off. It needs TEST_CONTROL=true, the memory store and simulated upgrades.',
    }),
    stop: server.close,
  };
}

function defaultsFor({ STORE_URL, UPGRADE_EXECUTOR }: Readonly<Record<string, string | undefined>>) {
  const allowsTestControl = !STORE_URL && UPGRADE_EXECUTOR !== 'kubernetes';
  return {
    PORT: '0',
    LOG_LEVEL: 'silent',
    TEST_CONTROL: String(allowsTestControl),
  };
}

/** A server may listen on all addresses, but a client connects to one. */
function reachable(address: string): string {
  return address.replace('//0.0.0.0:', '//127.0.0.1:').replace('//[::]:', '//[::1]:');
}
