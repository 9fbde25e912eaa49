/** Traces of personas that are paused, or served by processes of their own. */
import { say, type Scenario } from '../scenario.ts';

export const PERSONAS: readonly Scenario[] = [
  {
    name: 'persona-paused',
    shows: 'a step whose persona is paused waits, hooks are told that it does and that it goes on, and a restart changes nothing',
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
