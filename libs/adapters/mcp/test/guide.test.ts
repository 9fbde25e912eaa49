/** What the guide shows is read by the code that it describes. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parseMcpConfig } from '../src/mod.ts';

test('the configuration in the guide is one', () => {
  const guide = readFileSync(join(import.meta.dirname, '../../../../docs/guides/mcp-tools.md'), 'utf8');
  const configurations = [...guide.matchAll(/^```json\n(.*?)^```$/gms)].map((match) => match[1] as string);
  expect(configurations).toHaveLength(1);
  for (const configuration of configurations) expect(parseMcpConfig(configuration)).toBeTypeOf('object');
});
