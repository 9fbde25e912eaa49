/** Changes of the files of a served module. */
import { mkdtemp, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished, test, vi } from 'vitest';
import { watchFiles } from '../src/watch-files.ts';

const log = { debug() {}, info() {}, warn() {}, error() {} };

/**
 * Watches a file that has changed after it was loaded. Resolves when it was loaded again as often as this.
 * @param during runs within each reload, with its number. It returns the files of the module.
 */
async function reloaded(times: number, during: (reload: number, file: string) => Promise<readonly string[]>) {
  const folder = await mkdtemp(join(tmpdir(), 'cox-watch-'));
  const file = join(folder, 'module.ts');
  await writeFile(file, 'first');
  let reloads = 0;
  const watch = watchFiles([file], Date.now() - 60_000, log, () => during(++reloads, file));
  onTestFinished(async () => {
    await watch.end();
    await rm(folder, { recursive: true, force: true });
  });
  await vi.waitUntil(() => reloads >= times, { timeout: 30_000 });
}

test('a file that changed between its loading and the first look at it is loaded again', async () => {
  await reloaded(1, async (_reload, file) => [file]);
});

test('a file that changes while it is loaded again is loaded once more', async () => {
  await reloaded(2, async (reload, file) => {
    if (reload === 1) await writeFile(file, 'while the second version is loaded');
    return [file];
  });
});

test('an imported file that changes while its module is loaded is loaded again', async () => {
  await reloaded(2, async (reload, file) => {
    const imported = `${file}.imported.ts`;
    await writeFile(imported, '');
    // The clock of files may be some milliseconds behind.
    const changed = new Date(Date.now() + (reload === 1 ? 60_000 : -60_000));
    await utimes(imported, changed, changed);
    return [file, imported];
  });
});
