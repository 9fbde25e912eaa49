import type { Reporter, SerializedError, TestModule } from 'vitest/node';
import { leftOut } from './containers/left-out.ts';

/**
 * Prints the result once more as the last line of the output, plain and alone: `N passed, N failed`, and
 * `, N skipped` when something was. A file that cannot be loaded and an error outside every test count as failed. The
 * line before it says what of the run was left to machines with a container engine, if this is none.
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
    const notRun = leftOut(
      modules.map((module) => ({
        file: module.moduleId,
        project: module.project.name,
        tests: [...module.children.allTests()].length,
      })),
    );
    const line = `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}\n`;
    // Other reporters still write their summaries after this hook; only the exit comes after all of them.
    process.once('exit', () => process.stdout.write(`${notRun === null ? '' : `${notRun}\n`}${line}`));
  }
}
