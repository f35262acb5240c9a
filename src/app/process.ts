// The process: starts the server with the variables of the environment, prints its addresses. SIGTERM and SIGINT close it.
import { executionAsyncResource } from 'node:async_hooks';
import { existsSync } from 'node:fs';
import type { Logger } from 'pino';
import { type Config, ConfigError } from '../config/config.ts';
import { type StartOptions, type StartedServer, startServer } from './start.ts';

const closeWithinMs = 12_000;
/** Some work, such as a DNS lookup, cannot be cancelled and would keep the process alive. */
const lingerMs = 500;

type ProcessOptions = Pick<StartOptions, 'leaseMs' | 'startControlled'> & {
  /** A file with more variables. It may be absent. */
  readonly envFile?: string;
};

// Keeps one of the objects that Node creates for `process.nextTick`, and with it their hidden class. After a garbage
// collection that finds none of them, V8 would create each in 0.5 µs instead of 0.1, and a request needs nine.
const kept: object[] = [];

/** Resolves when the server listens. Ends the process if it cannot start. */
export async function runProcess(options: ProcessOptions): Promise<void> {
  process.nextTick(() => kept.push(executionAsyncResource()));
  // A program may close its end of the pipe once it has read the address. Another line must not end the process.
  process.stderr.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
  });
  try {
    await start(options);
  } catch (error) {
    if (error instanceof ConfigError)
      print(['Steward cannot start:', ...error.problems.map((problem) => `  ${problem}`)]);
    else print([`Steward cannot start: ${(error as Error).message}`]);
    // Without this, a store that is already open would keep the process alive.
    process.exit(1);
  }
}

async function start({ envFile, ...options }: ProcessOptions): Promise<void> {
  if (envFile !== undefined && existsSync(envFile)) process.loadEnvFile(envFile);
  const server = await startServer({
    ...options,
    env: process.env,
    measuresProcess: true,
    createLogger,
    onConfigured: (logger) => {
      process.on('uncaughtException', (error) => exitWithError(logger, error));
      process.on('unhandledRejection', (error) => exitWithError(logger, error));
    },
  });
  // Signals are handled before the addresses are printed: a program that has read them may send a signal at once.
  closeOnSignals(server);
  printAddresses(server);
  // The first answer loads the metrics. Without one, those of the process would begin with the first scrape.
  setTimeout(() => void server.app.loadMetrics(), 1_000).unref();
}

function exitWithError(logger: Logger, error: unknown): void {
  logger.fatal({ err: error }, 'unexpected failure, the process ends');
  logger.flush();
  process.exit(1);
}

function closeOnSignals({ close: closeServer, logger }: StartedServer): void {
  let isClosing = false;
  async function close(signal: string): Promise<void> {
    // Ctrl-C arrives twice under npm: from the terminal and from npm.
    if (isClosing) return;
    isClosing = true;
    logger.info({ signal }, 'closing');
    // Without this, the process would wait much longer for a database that does not respond.
    setTimeout(() => exitWithError(logger, new Error('closing took too long')), closeWithinMs).unref();
    try {
      await closeServer();
    } catch (error) {
      exitWithError(logger, error);
    }
    logger.info('closed');
    logger.flush();
    setTimeout(() => process.exit(), lingerMs).unref();
  }
  for (const signal of ['SIGTERM', 'SIGINT']) process.on(signal, () => void close(signal));
}

function printAddresses(server: StartedServer): void {
  const { address, metricsAddress, app, config, adminPassword } = server;
  const { urls } = app;
  print([
    `Steward listens on ${address}`,
    `  catalog  ${urls.base}${config.CATALOG_PATH}`,
    `  WSDL     ${urls.base}${config.CATALOG_PATH}?wsdl`,
    `  admin    ${urls.base}${config.ADMIN_PATH}`,
    ...(metricsAddress ? [`  metrics  ${metricsAddress}/metrics`] : []),
  ]);
  const hint = '(generated for this run; ADMIN_PASSWORD sets one)';
  if (adminPassword !== undefined && config.ADMIN_PASSWORD === undefined)
    print([`  sign in as ${config.ADMIN_USERNAME} with the password ${adminPassword} ${hint}`]);
}

/** Standard output is the log, so texts for people go to standard error. */
function print(lines: readonly string[]): void {
  process.stderr.write(`${lines.join('\n')}\n`);
}

/** Loads pino while the password of the first administrator is hashed. */
async function createLogger({ LOG_LEVEL: level }: Config): Promise<Logger> {
  const { pino } = await import('pino');
  if (!process.stdout.isTTY) return pino({ level });
  const { default: pretty } = await import('pino-pretty');
  const format = { ignore: 'pid,hostname', translateTime: 'HH:MM:ss.l', singleLine: true, sync: true };
  return pino({ level }, pretty(format));
}
