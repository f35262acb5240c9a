// Starts a controlled server for the process: an app whose store, clock and executor tests control.
import type { App } from '../app/app.ts';
import type { AppOptions } from '../app/start.ts';
import { ControlledServer } from './controlled-server.ts';
import { createControl } from './routes.ts';

export async function startControlled(options: AppOptions): Promise<App> {
  options.logger.warn(
    'TEST_CONTROL is on: anybody who reaches /control can reset the server and read what clients send',
  );
  const server = await ControlledServer.start(options, createControl);
  return server.app;
}
