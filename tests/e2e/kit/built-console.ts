/** The console, built from the source as it stands. */
import { execFile } from 'node:child_process';
import { readdirSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';

const root = resolve(import.meta.dirname, '../../..');

/** The folder of the console; built anew where its source has changed. */
export async function builtConsole(): Promise<string> {
  const folder = join(root, 'libs/cli/dist/console');
  const page = statSync(join(folder, 'index.html'), { throwIfNoEntry: false });
  const rooms = ['libs/console', 'libs/client/src', 'libs/protocol/src'].map((room) => join(root, room));
  if (page === undefined || Math.max(...rooms.map(newest)) > page.mtimeMs)
    await promisify(execFile)(process.execPath, [join(root, 'scripts/bundle-console.mjs')], { cwd: root });
  return folder;
}

function newest(folder: string): number {
  const times = readdirSync(folder, { withFileTypes: true })
    .filter(({ name }) => !['node_modules', 'dist', 'test'].includes(name))
    .map((entry) => {
      const path = join(folder, entry.name);
      return entry.isDirectory() ? newest(path) : statSync(path).mtimeMs;
    });
  return Math.max(0, ...times);
}
