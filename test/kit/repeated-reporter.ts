// Prints each test that was repeated, with the errors of both tries. `.ci/run` counts these lines.
import type { Reporter, TestCase } from 'vitest/node';

export default class RepeatedReporter implements Reporter {
  readonly #repeated: TestCase[] = [];

  onTestCaseResult(test: TestCase): void {
    if ((test.diagnostic()?.retryCount ?? 0) > 0) this.#repeated.push(test);
  }

  onTestRunEnd(): void {
    for (const test of this.#repeated) {
      const { project, module, fullName } = test;
      const errors = (test.result().errors ?? []).map(({ message }) => `  ${message}\n`);
      process.stdout.write(
        `Repeated: ${project.name} ${module.relativeModuleId} > ${fullName}\n${errors.join('')}`,
      );
    }
  }
}
