// The entry point of the server process.
import { run } from './app/process.ts';

await run();
