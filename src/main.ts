// The entry point of the server process.
import { runProcess } from './app/process.ts';

await runProcess({
  // Test control is loaded only when it is used.
  startControlled: async (options) => (await import('./testing/start.ts')).startControlled(options),
});
