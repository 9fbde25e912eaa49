/** The tool `get_result`. */
import type { Client } from '@coxswain/client';
import { expect, test } from 'vitest';
import type { ToolUse } from '../src/mcp-tool.ts';
import { getResult } from '../src/tools/look-tools.ts';

test('the last result is returned at once, also if another run has started meanwhile', async () => {
  const end = {
    type: 'agent_end',
    run: 1,
    stop_reason: 'end_turn',
    turns: 1,
    usage: { input_tokens: 1, output_tokens: 2 },
  };
  const ended = { n: 2, state: 'stopped', events: [{ ...end, pending: 0 }] };
  const session = {
    newest: async () => ended,
    result: () => new Promise(() => undefined),
    async *journal() {
      yield { record: ended };
      yield { record: { n: 3, state: 'provisioning', events: [{ type: 'prompt_received' }] } };
    },
  };
  const use = { client: { session: () => session } as unknown as Client, signal: new AbortController().signal };
  expect(await getResult.run({ session_id: 's1' }, use as unknown as ToolUse)).toMatchObject({
    ...{ session_id: 's1', state: 'stopped', n: 2 },
    result: { stop_reason: 'end_turn', turns: 1 },
  });
});
