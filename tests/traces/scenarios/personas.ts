/** Traces of personas that are paused, or served by processes of their own. */
import { ask, type Scenario, say } from '../scenario.ts';

export const PERSONAS: readonly Scenario[] = [
  {
    name: 'persona-hooks',
    shows:
      'personas bring hooks of their own, which go with a hand-off once its turn is over: a reminder, a refusal, a rewrite that a host’s hook sees, one whose code nobody serves, and at the end of the run on_finish',
    turns: [
      ask(['look', { at: 'the bow' }], ['look', { at: 'the cargo' }]),
      ask(['handoff', { to: 'cook', brief: 'Make dinner.' }]),
      say('Soup.'),
    ],
    tools: ['look', 'crew'],
    hooks: [{ registration: { id: 'log', point: 'PreToolUse', pattern: 'look' } }],
    async play(stage) {
      await stage.host();
      await stage.start({
        persona: {
          name: 'mate',
          version: '1',
          handoffs: ['cook'],
          hooks: [
            { event: 'session_start', returns: { body: 'Mind the tide.' } },
            { event: 'PreToolUse', pattern: 'tool.args.at == "the cargo"', deny: 'it is sealed' },
            { event: 'PreToolUse', pattern: 'look', priority: 1, returns: { args: { at: 'the stern' } } },
            { event: 'post_turn', handler: './log.js#turn', id: 'log', on_error: 'fail_open' },
          ],
        },
        personas: [
          {
            name: 'cook',
            version: '1',
            hooks: [{ event: 'post_turn', returns: { body: 'Wash up.' } }],
            on_finish: { returns: { body: 'Dinner was served.' } },
          },
        ],
      });
      await stage.wait(1_000);
    },
  },
  {
    name: 'persona-step-lost',
    shows: 'a step waits for somebody who serves its persona; who runs it is killed, and another one answers',
    turns: [say('Clear.', { delay_ms: 1_000 })],
    async play(stage) {
      await stage.host();
      stage.serve('1').stop();
      await stage.start({ persona: 'mate' });
      await stage.wait(2_000);
      const first = stage.serve('1');
      await stage.wait(500);
      stage.serve('1');
      first.kill();
      await stage.wait(5_000);
    },
  },
  {
    name: 'persona-paused',
    shows:
      'a step whose persona is paused waits, hooks are told that it does and that it goes on, and a restart changes nothing',
    turns: [say('Clear.')],
    hooks: [
      { registration: { id: 'paused', point: 'OnPersonaPaused' } },
      { registration: { id: 'resumed', point: 'OnPersonaResumed' } },
    ],
    async play(stage) {
      await stage.host();
      stage.personas.setPause(stage.tenant, 'mate', { reason: 'the tide' });
      await stage.start();
      await stage.wait(10_000);
      stage.crash();
      await stage.host('quay');
      await stage.wait(10_000);
      stage.personas.setPause(stage.tenant, 'mate', null);
      await stage.wait(1_000);
    },
  },
];
