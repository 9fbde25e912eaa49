import type { SessionEvent } from '@coxswain/protocol';
import { expect, test } from 'vitest';
import { sessionLines } from '../src/run/mod.ts';

const lines = (...events: object[]) => sessionLines({ session_id: 's1', events: events as unknown as SessionEvent[] });

test('cox up prints one line when a session starts, waits, ends or fails, and no other line', () => {
  expect(
    lines(
      { type: 'agent_start', run: 1, persona: 'coder', model: 'a/b\u001b[2J' },
      { type: 'agent_start', run: 2, persona: null, model: null },
      { type: 'turn_start', turn: 1 },
      { type: 'approval_requested', call_id: 'c1', tool: 'run_command', args: {} },
      { type: 'suspended', until_ms: 0, reason: 'a delivery\u001b[2J\nof parts' },
      { type: 'resumed', cause: 'timeout', slept_ms: 5 },
      { type: 'agent_end', run: 1, stop_reason: 'end_turn' },
      { type: 'agent_end', run: 1, stop_reason: 'error', error: { code: 'model_unavailable', message: 'gone' } },
    ),
  ).toEqual([
    's1 started: coder on a/b[2J',
    's1 started run 2',
    's1 waits for an approval of run_command (c1): cox approval list',
    's1 is suspended until 1970-01-01T00:00:00.000Z: a delivery[2J …',
    's1 resumed (timeout)',
    's1 ended (end_turn)',
    's1 failed: model_unavailable: gone',
  ]);
});
