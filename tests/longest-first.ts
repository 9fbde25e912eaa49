import { relative } from 'node:path';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/**
 * Files of processes and servers first: they wait for most of their time, so that they had better not be what the end of
 * a run waits for. Within both halves what took longest the last time comes first; in a fresh clone, the largest file.
 */
export default class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const isOfProcesses = ({ moduleId }: TestSpecification) =>
      relative(this.ctx.config.root, moduleId).startsWith('tests');
    const sorted = await super.sort(files);
    return [...sorted.filter(isOfProcesses), ...sorted.filter((file) => !isOfProcesses(file))];
  }
}
