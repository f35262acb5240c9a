// The entry point of the server process, which `npm start` runs.
import { runProcess } from './app/process.ts';

await runProcess({
  envFile: '.env',
  // Test control is loaded only when it is used.
  startControlled: async (options) => (await import('./testing/routes.ts')).startControlled(options),
});
