/** Every code that the command line or the client can print is in the catalogue, which the reference is made of. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isErrorCode } from '@coxswain/protocol';
import { expect, test } from 'vitest';

/** Where a code is written: as an argument of an error's constructor or of `super`, or as its member. The first of InvalidOptionError is an option. */
const CODES = [
  /new \w*Error\(\s*EXIT\.\w+,\s*'([a-z0-9_]+)'/g,
  /(?:new (?!InvalidOptionError)\w*Error|super)\(\s*'([a-z0-9_]+)',/g,
  /\bcode: '([a-z0-9_]+)'/g,
  /\bcode \?\? '([a-z0-9_]+)'/g,
];

const libs = fileURLToPath(new URL('../../', import.meta.url));

test.each([
  ['cli', 'usage'],
  ['client', 'receipt_timeout'],
])('codes of %s', (lib, known) => {
  const folder = join(libs, lib, 'src');
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'));
  const sources = files.map((name) => readFileSync(join(folder, name), 'utf8'));
  const codes = new Set(
    sources.flatMap((text) => CODES.flatMap((form) => [...text.matchAll(form)].map(([, code]) => code))),
  );
  expect(codes).toContain(known);
  expect([...codes].filter((code) => !isErrorCode(code as string))).toEqual([]);
});
