/** What the guide says is held against the code that it describes. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ruleOn, sessionRef } from '@coxswain/protocol';
import { expect, test } from 'vitest';
import { createBuiltInTools } from '../src/mod.ts';
import { freshGround } from './session-tools.ts';

const guide = readFileSync(join(import.meta.dirname, '../../../../docs/guides/built-in-tools.md'), 'utf8');

test('the guide lists every built-in tool, and whether it asks', async () => {
  const { root } = await freshGround();
  // A session that keeps results whole, so that one can be read on, and whose persona has a skill.
  const spec = {
    ref: sessionRef('s1'),
    root,
    mcpServers: {},
    results: { read: async () => 'unknown' as const },
    skills: [{ name: 'letters', description: 'How to write letters.', body: '', files: [] }],
  };
  const toolset = await createBuiltInTools({ fetchUrl: true }).open(spec, new AbortController().signal);
  if (!('call' in toolset)) throw new Error(`not opened: ${toolset.message}`);
  const rows = [...guide.matchAll(/^\| `(\w+)` \|.*\| (allowed|asks) \|$/gm)].map(
    ([, tool, says]) => `${tool} ${says}`,
  );
  const words = { allow: 'allowed', ask: 'asks', deny: 'denied' };
  const tools = toolset.tools.map(
    ({ name }) => `${name} ${words[ruleOn({ rules: [], default: 'ask' }, name, {}).action]}`,
  );
  expect(rows.sort()).toEqual(tools.sort());
});
