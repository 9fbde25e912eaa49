/** A source whose tools stand in for those of another. */
import type { ToolCall, ToolSource, Toolset } from '@coxswain/ports';
import { DEFAULT_TRAITS, sessionRef, type ToolDefinition } from '@coxswain/protocol';
import { expect, it } from 'vitest';
import { combineToolSources } from '../src/mod.ts';

const tool = (name: string, source: string): ToolDefinition => ({
  name,
  description: `${name} of ${source}`,
  input_schema: {},
  source,
  traits: DEFAULT_TRAITS,
});

function sourceOf(name: string, tools: readonly string[], standsIn?: () => readonly string[]): ToolSource {
  return {
    ...(standsIn ? { hasLowerPrecedence: true } : {}),
    open: async (): Promise<Toolset> => ({
      tools: tools.map((one) => tool(one, name)),
      get replaces() {
        return standsIn?.() ?? [];
      },
      call: async () => ({ status: 'ok', result: { content: [{ type: 'text', text: name }], is_error: false } }),
      probe: async () => ({ state: 'unknown' }),
      close: async () => [],
    }),
  };
}

const ref = sessionRef('s1', 'default');
const callOf = (name: string): ToolCall => ({
  idempotencyKey: 'default.s1.1-0',
  ref,
  callId: 'c1',
  tool: name,
  args: {},
  epoch: 1,
  onProgress: () => undefined,
  onFeedback: () => undefined,
});

it('has its tools in the place of the others as long as they stand in, and in their order', async () => {
  let standing: readonly string[] = ['read'];
  const combined = combineToolSources([
    sourceOf('strangers', ['read', 'list', 'more'], () => standing),
    sourceOf('own', ['read', 'list']),
  ]);
  const { signal } = new AbortController();
  const opened = await combined.open({ ref, root: '/', mcpServers: {} }, signal);
  if (!('tools' in opened)) throw new Error(opened.message);
  const sources = () => opened.tools.map(({ name, source }) => `${name} ${source}`);
  const callee = async (name: string) => (await opened.call(callOf(name), signal)).result.content[0];
  expect(sources()).toEqual(['read strangers', 'list own', 'more strangers']);
  expect(await callee('read')).toMatchObject({ text: 'strangers' });
  // A name alone stands in for nothing.
  expect(await callee('list')).toMatchObject({ text: 'own' });
  standing = [];
  expect(sources()).toEqual(['read own', 'list own', 'more strangers']);
  expect(await callee('read')).toMatchObject({ text: 'own' });
});
