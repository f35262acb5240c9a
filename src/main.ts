// The entry point of the server process.
import { runProcess } from './app/process.ts';

await runProcess();
