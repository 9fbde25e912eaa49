/** The linter: Node's syntax check, which does not run the file. Replace it by your own. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';

/** The outcome, and the text for the model. */
export interface Linted {
  readonly status: 'succeeded' | 'failed';
  readonly report: string;
}

const LINTED_WITHIN_MS = 30_000;

/** Lints one file. Never rejects: if the linter cannot run, the outcome says so. */
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
