/** Runs that end by a budget or a stop condition, or tell how much of a budget they have used. */
import { ask, type Scenario, say } from '../scenario.ts';

const used = (input_tokens: number, output_tokens: number) => ({ usage: { input_tokens, output_tokens } });

/** See the top of the file. */
export const LIMITS: readonly Scenario[] = [
  {
    name: 'budget-thresholds',
    shows: 'a run tells at 50 and 80 percent of its tokens, ends plainly, and begins at nothing with the next prompt',
    turns: [
      { ...ask(['haul', { ms: 50 }]), ...used(300, 250) },
      say('Hauled.', used(290, 10)),
      say('Done.', used(400, 110)),
    ],
    tools: ['haul'],
    async play(stage) {
      await stage.host();
      await stage.start({ limits: { tokens: 1_000 } });
      await stage.wait(100);
      await stage.send('prompt', { body: 'And now?' });
    },
  },
  {
    name: 'budget-tokens',
    shows: 'an answer uses the last tokens: the calls that it asks for are not started, what waits stays',
    turns: [{ ...ask(['haul', { ms: 50 }], ['haul', { ms: 60 }]), ...used(600, 400), delay_ms: 50 }],
    tools: ['haul'],
    async play(stage) {
      await stage.host();
      await stage.start({ limits: { tokens: 1_000 } });
      await stage.send('steer', { body: 'Mind the buoy.' });
      await stage.wait(100);
    },
  },
  {
    name: 'budget-uncovered',
    shows: 'another answer would need more tokens than are left: the calls of the last one run, and the run ends',
    turns: [{ ...ask(['haul', { ms: 50 }]), ...used(600, 10) }],
    tools: ['haul'],
    async play(stage) {
      await stage.host();
      await stage.start({ limits: { tokens: 1_000 } });
      await stage.wait(100);
    },
  },
  {
    name: 'budget-usd',
    shows: 'the price enters the journal, each turn says what it cost, and a budget in USD ends the run',
    turns: [
      { ...ask(['haul', { ms: 50 }]), ...used(1_000, 100) },
      { ...ask(['haul', { ms: 50 }]), ...used(1_200, 800) },
    ],
    tools: ['haul'],
    price: { input: 3, output: 15 },
    async play(stage) {
      await stage.host();
      await stage.start({ limits: { usd: 0.02 } });
      await stage.wait(100);
    },
  },
  {
    name: 'budget-wall-time',
    shows: 'time runs out while a call runs: the call is aborted and has its result',
    turns: [ask(['haul', { ms: 60_000 }])],
    tools: ['haul'],
    async play(stage) {
      await stage.host();
      await stage.start({ limits: { wall_time_ms: 1_000 } });
      await stage.wait(1_000);
      await stage.send('steer', { body: 'Slower.' });
    },
  },
  {
    name: 'stop-text',
    shows: 'an answer says what ends the run: the follow-up waits for the next one',
    turns: [say('All fast.', { delay_ms: 50 })],
    async play(stage) {
      await stage.host();
      await stage.start({ persona: { name: 'mate', stop_when: [{ text: '/all fast/i' }] } });
      await stage.send('followup', { body: 'Then look ahead.' });
      await stage.wait(100);
    },
  },
  {
    name: 'stop-tool',
    shows: 'a tool ends the run once its batch has run',
    turns: [ask(['haul', { ms: 50 }])],
    tools: ['haul'],
    async play(stage) {
      await stage.host();
      await stage.start({ persona: { name: 'mate', stop_when: [{ tool: 'ha*' }] } });
      await stage.wait(100);
    },
  },
  {
    name: 'stop-tool-steered',
    shows: 'steering at post_tool_dispatch makes the run go on although a stop condition holds',
    turns: [ask(['haul', { ms: 50 }]), say('Slower it is.')],
    tools: ['haul'],
    async play(stage) {
      await stage.host();
      await stage.start({ persona: { name: 'mate', stop_when: [{ tool: 'haul' }] } });
      await stage.send('steer', { body: 'Slower.' });
      await stage.wait(100);
    },
  },
  {
    name: 'stop-predicate',
    shows: 'a predicate in code is asked after each turn: of the first it fails, at the second it ends the run',
    turns: [ask(['haul', { ms: 50 }]), ask(['haul', { ms: 60 }]), say('Not reached.')],
    tools: ['haul'],
    stopPredicates: {
      hauled_twice: ({ turn }) => {
        if (turn === 1) throw new Error('too early to say');
        return turn === 2;
      },
    },
    async play(stage) {
      await stage.host();
      await stage.start({ persona: { name: 'mate', stop_when: [{ predicate: 'hauled_twice' }] } });
      await stage.wait(200);
    },
  },
];
