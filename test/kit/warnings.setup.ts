// Fails a test file when Node emits a warning during it, for example about too many listeners or a deprecated function.
import { afterAll, expect } from 'vitest';

const warnings: string[] = [];

function noteWarning(warning: Error): void {
  warnings.push(String(warning.stack));
}

process.on('warning', noteWarning);

afterAll(() => {
  process.off('warning', noteWarning);
  expect(warnings).toEqual([]);
});
