/** Hosts of a service have a young generation of 32 MiB, unless the user sets another size. */
import { expect, test } from 'vitest';
import { youngGeneration } from '../src/hosts/young-generation.ts';

const OURS = ['--max-semi-space-size=32'];

test.each([
  [undefined, OURS],
  ['--enable-source-maps', OURS],
  ['--max-semi-space-size=64', []],
  ['--max_semi_space_size=64', []],
  ['--enable-source-maps --min-semi_space-size=8', []],
])('NODE_OPTIONS %s', (NODE_OPTIONS, flags) => {
  expect(youngGeneration({ NODE_OPTIONS })).toEqual(flags);
});
