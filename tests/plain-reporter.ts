import type { Reporter, SerializedError, TestModule } from 'vitest/node';

/**
 * Prints the result once more as the last line of the output, plain and alone: `N passed, N failed`, and
 * `, N skipped` when something was. A file that cannot be loaded and an error outside every test count as failed.
 */
export default class PlainReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandled: readonly SerializedError[]): void {
    let passed = 0;
    let failed = unhandled.length;
    let skipped = 0;
    for (const module of modules) {
      failed += module.errors().length;
      for (const suite of module.children.allSuites()) failed += suite.errors().length;
      for (const test of module.children.allTests()) {
        const { state } = test.result();
        if (state === 'passed') passed += 1;
        else if (state === 'failed') failed += 1;
        else skipped += 1;
      }
    }
    if (modules.length === 0) failed += 1;
    const line = `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}\n`;
    // Other reporters still write their summaries after this hook; only the exit comes after all of them.
    process.once('exit', () => process.stdout.write(line));
  }
}
