/** Runs whose persona declares steps: in order, rewritten and refused by hooks, failed at each boundary, over their budgets. */
import { ask, type Scenario, say } from '../scenario.ts';
import { at } from './hooks.ts';

const persona = (plan: object, log: object = {}) => ({
  persona: {
    name: 'mate',
    steps: [
      { name: 'plan', prompt: 'Say how to haul the net.', ...plan },
      { name: 'log', prompt: 'Write what was done into the log.', ...log },
    ],
  },
});
const broken = say('With two', { chunk_ms: 100, fail: { kind: 'network', after_ms: 150 } });

/** See the top of the file. */
export const STEPS: readonly Scenario[] = [
  {
    name: 'steps-in-order',
    shows: 'two steps of one run, each with its own tools; a message keeps the first open',
    turns: [ask(['look', { at: 'the net' }]), say('Slowly.', { delay_ms: 50 }), say('Slower.'), say('Logged.')],
    tools: ['look', 'haul'],
    async play(stage) {
      await stage.host();
      await stage.start(persona({ tools: ['look'] }, { tools: { allow: [] } }));
      await stage.send('steer', { body: 'Mind the keel.' });
      await stage.wait(100);
    },
  },
  {
    name: 'steps-hooked',
    shows: 'a PreStep hook gives a step another prompt, a PostStep hook takes its answer as another',
    turns: [say('With two hands.'), say('Logged.')],
    hooks: [
      at('PreStep', { args: { prompt: 'Say in four words how to haul the net.' } }, { step: 'plan' }),
      at('PostStep', { output: 'With four hands.' }, { step: 'plan' }),
    ],
    async play(stage) {
      await stage.host();
      await stage.start(persona({}));
      await stage.wait(100);
    },
  },
  {
    name: 'steps-refused',
    shows: 'a hook refuses what a step came to, and the run fails with it',
    turns: [say('With one hand.')],
    hooks: [at('PostStep', { deny: 'one hand for the ship' })],
    async play(stage) {
      await stage.host();
      await stage.start(persona({}));
      await stage.wait(100);
    },
  },
  {
    name: 'steps-over-budget',
    shows: 'a step uses up its tokens before it answers: the next one is told and goes on',
    turns: [{ ...ask(['haul', { ms: 50 }]), usage: { input_tokens: 90, output_tokens: 30 } }, say('Logged.')],
    tools: ['haul'],
    async play(stage) {
      await stage.host();
      await stage.start(persona({ max_tokens: 100, error_boundary: 'continue' }));
      await stage.wait(100);
    },
  },
  {
    name: 'steps-escalated',
    shows: 'the model fails in a step: the session waits for a person, who has it begun again',
    turns: [broken, say('Slowly.'), say('Logged.')],
    async play(stage) {
      await stage.host();
      await stage.start(persona({ error_boundary: 'escalate' }));
      await stage.wait(3_600_000);
      await stage.send('resume', {});
      await stage.wait(100);
    },
  },
];
