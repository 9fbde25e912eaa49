/** The linter: Node's own syntax check, which runs nothing of the file, but has to know that it is a module. Put yours here. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';

/** How it ended, and what the model is told. */
export interface Linted {
  readonly status: 'succeeded' | 'failed';
  readonly report: string;
}

const LINTED_WITHIN_MS = 30_000;

/** Lints one file. Never rejects: a linter that does not run has found nothing, and says so. */
export function lint(root: string, path: string): Promise<Linted> {
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      ['--check', join(root, path)],
      { timeout: LINTED_WITHIN_MS },
      (error, _out, complaint) => {
        if (!error) return resolve({ status: 'succeeded', report: `lint: ${path} is clean` });
        const said = complaint.replaceAll(`${root}/`, '').slice(0, 1_500) || error.message;
        resolve({ status: 'failed', report: `lint: ${path}\n${said}` });
      },
    );
  });
}
