/** Runs that nobody interferes with: answers, batches, and the ways in which a run ends by itself. */
import { ask, type Scenario, say } from '../scenario.ts';

/** See the top of the file. */
export const PLAIN_RUNS: readonly Scenario[] = [
  {
    name: 'plain-answer',
    shows: 'one answer, and the run ends',
    turns: [say('Aye.', { usage: { input_tokens: 12, output_tokens: 2, cached_input_tokens: 8 } })],
    async play(stage) {
      await stage.host();
      await stage.start({ actor: 'mara' });
    },
  },
  {
    name: 'tool-calls',
    shows: 'two turns with calls, one of which fails, and an answer',
    turns: [
      { ...ask(['look', { at: 'the bow' }]), text: 'I look.', usage: { input_tokens: 20, output_tokens: 9 } },
      { ...ask(['snag']), reasoning: 'The line first.', usage: { input_tokens: 30, output_tokens: 7 } },
      say('The line is foul.', { usage: { input_tokens: 40, output_tokens: 5, reasoning_tokens: 2 } }),
    ],
    tools: ['look', 'snag'],
    async play(stage) {
      await stage.host();
      await stage.start();
    },
  },
  {
    name: 'parallel-batch',
    shows: 'of four calls a rule refuses one, two run at a time; a result that comes early makes room for the last',
    turns: [
      ask(['haul', { ms: 300 }], ['haul', { ms: 100 }], ['haul', { ms: 9_000 }], ['look', { at: 'aft' }]),
      say('Done.'),
    ],
    tools: ['haul', 'look'],
    async play(stage) {
      await stage.host();
      await stage.start({
        limits: { parallel_calls: 2 },
        permissions: { rules: [{ tool: 'haul', when: 'ms == "9000"', action: 'deny' }], default: 'allow' },
      });
      await stage.wait(1_000);
    },
  },
  {
    name: 'malformed-calls',
    shows:
      'an unknown tool, arguments that do not fit and arguments that are no JSON get error results; the fourth runs',
    turns: [
      ask(['keelhaul'], ['look', { at: 7 }], ['look', '{"at": "the'], ['look', { at: 'the stern' }]),
      ask(['keelhaul']),
      say('I give up.'),
    ],
    tools: ['look'],
    async play(stage) {
      await stage.host();
      await stage.start();
    },
  },
  {
    name: 'follow-up',
    shows: 'two follow-ups are taken one at a time, each when the run would have ended; a steer goes before both',
    turns: [say('One.', { delay_ms: 100 }), say('Steered.'), say('Two.'), say('Three.')],
    async play(stage) {
      await stage.host();
      await stage.start();
      await stage.send('followup', { body: 'Then look ahead.', actor: 'mara' });
      await stage.send('followup', { body: 'Then report.' });
      await stage.send('steer', { body: 'Slower.' });
      await stage.wait(200);
    },
  },
  {
    name: 'max-turns',
    shows: 'the cap ends a run with calls, what waits stays for the next run; that ends at the cap with a plain answer',
    turns: [ask(['haul', { ms: 50 }]), say('On course.', { delay_ms: 50 })],
    tools: ['haul'],
    async play(stage) {
      await stage.host();
      await stage.start({ max_turns: 1 });
      await stage.send('steer', { body: 'Mind the buoy.' });
      await stage.wait(100);
      await stage.send('prompt', { body: 'Go on.' });
      await stage.send('followup', { body: 'And then?' });
      await stage.wait(100);
    },
  },
  {
    name: 'terminates',
    shows: 'a batch of nothing but terminating calls ends the run without another answer',
    turns: [ask(['moor'])],
    tools: ['moor'],
    async play(stage) {
      await stage.host();
      await stage.start();
    },
  },
  {
    name: 'large-field',
    shows: 'a prompt over 64 KiB is stored apart, once; the records that hold it refer to it',
    turns: [say('That is long.')],
    async play(stage) {
      await stage.host();
      await stage.start({ prompt: 'All hands on deck. '.repeat(3_450) });
    },
  },
];
