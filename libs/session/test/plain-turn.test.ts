/** What a run costs and in which order it becomes visible: R1 to R4. */
import { expect, test } from 'vitest';
import { ask, call, say } from './fake-model.ts';
import { testBed } from './test-bed.ts';

test('a run stands in the journal from its prompt to its end', async () => {
  const bed = testBed();
  bed.models.answers = [ask(call('c1', 'read')), say('done')];
  await bed.host();
  await bed.start();
  expect(await bed.lines()).toEqual([
    'prompt_received run 1',
    'persona_changed',
    'tools_changed',
    'hooks_changed',
    'agent_start run 1',
    'turn_start 1',
    'message_complete asks c1',
    'call_started c1',
    'call_ended c1 ok',
    'turn_end 1',
    'turn_start 2',
    'message_complete "done"',
    'turn_end 2',
    'tools_closed',
    'agent_end end_turn',
  ]);
});
