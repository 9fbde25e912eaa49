/** Traces of personas that are paused, or served by processes of their own. */
import { type Scenario, say } from '../scenario.ts';

export const PERSONAS: readonly Scenario[] = [
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
