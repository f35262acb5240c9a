// The entry point of the server process.
import { run } from './process.ts';

await run();
