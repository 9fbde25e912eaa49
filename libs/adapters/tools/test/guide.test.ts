/** What the guide says is held against the code that it describes. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ruleOn } from '@coxswain/protocol';
import { expect, test } from 'vitest';
import { builtIns } from './session-tools.ts';

const guide = readFileSync(join(import.meta.dirname, '../../../../docs/guides/tools.md'), 'utf8');

test('the guide lists every built-in tool, and whether it asks', async () => {
  const { toolset } = await builtIns({ fetchUrl: true });
  const rows = [...guide.matchAll(/^\| `(\w+)` \|.*\| (allowed|asks) \|$/gm)].map(
    ([, tool, says]) => `${tool} ${says}`,
  );
  const words = { allow: 'allowed', ask: 'asks', deny: 'denied' };
  const tools = toolset.tools.map(
    ({ name }) => `${name} ${words[ruleOn({ rules: [], default: 'ask' }, name, {}).action]}`,
  );
  expect(rows.sort()).toEqual(tools.sort());
});
