/** Compactions of every kind, what hooks make of them, and prompts that the provider refuses as too long. */
import type { HookPoint, JsonObject } from '@coxswain/protocol';
import { ask, type Scenario, say, type TracedHook } from '../scenario.ts';
import { SCRIPT, type Stage } from '../stage.ts';

/** A persona whose model takes little, so that a few turns are too much for it. */
const mate = (compaction: JsonObject, more: JsonObject = {}) => ({
  name: 'mate',
  model: { name: `scripted/${SCRIPT}`, context_window: 1_000 },
  compaction: { reserve: 200, ...compaction },
  ...more,
});
/** What an answer's provider reports of its prompt. */
const of = (tokens: number): JsonObject => ({ usage: { input_tokens: tokens, output_tokens: 10 } });
const look = (at: string, tokens: number): JsonObject => ({ ...ask(['look', { at }]), ...of(tokens) });
/** A result that is long enough to be worth a stub. */
const FAR = `${'the horizon, and then '.repeat(20)}the horizon`;

const at = (point: HookPoint, returns?: unknown): TracedHook => ({
  registration: { id: point, point },
  ...(returns === undefined ? {} : { returns }),
});

/** A host, and a session of the mate with this compaction. */
const begins = (compaction: JsonObject) => async (stage: Stage) => {
  await stage.host();
  await stage.start({ persona: mate(compaction) });
};

/** See the top of the file. */
export const COMPACTION: readonly Scenario[] = [
  {
    name: 'compaction-summary',
    shows: 'a summary stands for older turns; the newest turn and the steer of the run stay as they are',
    turns: [look('the bow', 300), look('the stern', 900), say('All clear.', of(400))],
    compactions: [{ text: 'The bow was clear.', usage: { input_tokens: 250, output_tokens: 8 } }],
    tools: ['look'],
    async play(stage) {
      await stage.host();
      stage.publish('start', {
        prompt: 'Take her out.',
        persona: mate({ keep_turns: 1 }),
        model: `scripted/${SCRIPT}`,
        permissions: { default: 'allow' },
      });
      await stage.send('steer', 'Mind the buoy.');
    },
  },
  {
    name: 'compaction-notes',
    shows: 'notes are kept, and written anew at the second pass',
    turns: [look('the bow', 900), look('the stern', 300), look('the mast', 900), say('All clear.', of(400))],
    compactions: [{ text: 'Done: bow.' }, { text: 'Done: bow, stern, mast.' }],
    tools: ['look'],
    play: begins({ strategy: 'notes', keep_turns: 0 }),
  },
  {
    name: 'compaction-clears-results',
    shows: 'old results are replaced by stubs, without a model step; calls and short results stay',
    turns: [look(FAR, 500), look('the stern', 900), say('All clear.', of(400))],
    tools: ['look'],
    play: begins({ strategy: 'clear_tool_results', keep_turns: 1 }),
  },
  {
    name: 'compaction-falls-back',
    shows: 'no summary can be had, so old results are cleared instead',
    turns: [look(FAR, 900), say('All clear.', of(400))],
    compactions: [{ fail: { kind: 'error' } }],
    tools: ['look'],
    play: begins({ keep_turns: 0 }),
  },
  {
    name: 'compaction-skipped',
    shows: 'no summary can be had and there is nothing to clear: the run goes on with the view as it was',
    turns: [look('the bow', 900), say('All clear.', of(900))],
    compactions: [{ text: ' ' }],
    tools: ['look'],
    play: begins({ keep_turns: 0 }),
  },
  {
    name: 'compaction-cancelled',
    shows: 'the run is cancelled while the summary is written',
    turns: [look('the bow', 900), say('Never said.')],
    compactions: [{ text: 'Never kept.', delay_ms: 60_000 }],
    tools: ['look'],
    async play(stage) {
      await begins({ keep_turns: 0 })(stage);
      await stage.wait(1_000);
      await stage.send('cancel', { reason: 'storm warning' });
    },
  },
  {
    name: 'preempted-while-compacting',
    shows: 'what does not wait lets a compaction finish, and ends the answer behind it',
    turns: [look('the bow', 900), say('All clear.', of(400))],
    compactions: [{ text: 'The bow was clear.', delay_ms: 60_000 }],
    tools: ['look'],
    async play(stage) {
      await begins({ keep_turns: 0 })(stage);
      await stage.wait(1_000);
      const gone = await stage.send('steer', { body: 'Hard to port!', preempt: true });
      await stage.send('steer', { body: 'Man overboard!', preempt: true });
      await stage.send('revoke', { command_id: gone });
      await stage.wait(61_000);
    },
  },
  {
    name: 'compaction-crash',
    shows: 'the host dies while the summary is written; the next one asks for it again, under the same id',
    turns: [look('the bow', 900), say('All clear.', of(400))],
    compactions: [{ text: 'The bow was clear.', delay_ms: 60_000 }],
    tools: ['look'],
    async play(stage) {
      await begins({ keep_turns: 0 })(stage);
      await stage.wait(1_000);
      stage.crash();
      await stage.host('bridge');
      await stage.wait(61_000);
    },
  },
  {
    name: 'compaction-hooked',
    shows: 'hooks before and after a compaction, and before each request',
    turns: [look('the bow', 900), say('All clear.', of(400))],
    compactions: [{ text: 'The bow was clear.' }],
    tools: ['look'],
    hooks: [
      at('pre_compact', true),
      at('post_compact'),
      at('transform_context', { messages: [{ role: 'user', content: [{ type: 'text', text: 'Only this.' }] }] }),
    ],
    play: begins({ keep_turns: 0 }),
  },
  {
    name: 'compaction-vetoed',
    shows: 'a hook vetoes the compaction, and the prompt goes out as it is',
    turns: [look('the bow', 900), say('All clear.', of(950))],
    compactions: [{ text: 'Never asked for.' }],
    tools: ['look'],
    hooks: [at('pre_compact', { block: true, reason: 'every word counts' })],
    play: begins({ keep_turns: 0 }),
  },
  {
    name: 'overflow-retried',
    shows: 'the provider refuses the prompt: one compaction, the same turn once more, and it fits',
    turns: [look('the bow', 100), { fail: { kind: 'context_overflow' } }, say('All clear.', of(90))],
    compactions: [{ text: 'The bow was clear.' }],
    tools: ['look'],
    play: begins({}),
  },
  {
    name: 'overflow-twice',
    shows: 'the provider refuses the prompt again after the compaction: the run ends',
    turns: [
      look('the bow', 100),
      { fail: { kind: 'context_overflow' } },
      { fail: { kind: 'context_overflow' } },
      say('Never said.'),
    ],
    compactions: [{ text: 'The bow was clear.' }],
    tools: ['look'],
    play: begins({}),
  },
];
