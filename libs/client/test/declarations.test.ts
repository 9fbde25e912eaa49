/** The declarations of the client in the strictest program of a user: in Node, and in a page. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

test('strict programs compile against the declarations, and contradictory options do not', {
  timeout: 600_000,
}, async () => {
  const script = join(import.meta.dirname, 'check-declarations.mjs');
  const { stdout } = await promisify(execFile)(process.execPath, [script]);
  expect(JSON.parse(stdout)).toEqual({ node: [], page: [] });
});
