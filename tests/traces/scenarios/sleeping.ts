/** Sessions that sleep: until a time, until a signal, by themselves, and daemons that wake by themselves. */
import { ask, type Scenario, say } from '../scenario.ts';
import { at } from './hooks.ts';

const HOUR = 3_600_000;

/** See the top of the file. */
export const SLEEPING: readonly Scenario[] = [
  {
    name: 'suspended-until-a-time',
    shows: 'a session sleeps for an hour, is resumed with its input, and is told how long it slept',
    turns: [say('Anchored.', { delay_ms: 100 }), say('Weighing anchor.')],
    async play(stage) {
      await stage.host();
      await stage.start();
      await stage.send('suspend', {
        reason: 'ebb',
        for_ms: HOUR,
        on_timeout: 'resume_with_input',
        input: 'The tide has turned.',
      });
      await stage.wait(HOUR + 200);
    },
  },
  {
    name: 'suspended-until-a-signal',
    shows: 'a signal of another name is kept, the one that is waited for wakes the session and takes its data along',
    turns: [
      say('Waiting for the pilot.', { delay_ms: 100 }),
      say('Welcome aboard.', { delay_ms: 100 }),
      say('And on.'),
    ],
    async play(stage) {
      await stage.host();
      await stage.start();
      await stage.send('suspend', { signal: 'pilot', until: '2030-01-01T06:00:00Z' });
      await stage.wait(200);
      await stage.send('signal', { name: 'tug', data: { lines: 2 } });
      await stage.wait(HOUR);
      await stage.send('signal', { name: 'pilot', data: { name: 'Ines' }, actor: 'mara' });
      // The timer of the wait that is over fires into the void; the signal that was kept ends the next wait at once.
      await stage.send('suspend', { signal: 'tug' });
      await stage.wait(6 * HOUR);
    },
  },
  {
    name: 'suspended-past-a-message',
    shows:
      'an interrupt that is taken back before it is delivered wakes nobody; one that is delivered is not slept through',
    turns: [ask(['haul', { ms: 100 }]), ask(['haul', { ms: 100 }]), say('Anchored.')],
    tools: ['haul'],
    async play(stage) {
      await stage.host();
      await stage.start();
      await stage.send('suspend', { reason: 'ebb' });
      const gone = await stage.send('steer', { body: 'Wait!', mode: 'interrupt' });
      await stage.send('revoke', { command_id: gone });
      await stage.wait(HOUR);
      await stage.send('resume', {});
      await stage.wait(50);
      await stage.send('suspend', { reason: 'ebb again' });
      await stage.send('steer', { body: 'Not now.', mode: 'interrupt' });
      await stage.wait(200);
    },
  },
  {
    name: 'suspension-lapsed',
    shows:
      'a suspension that is asked for in the last turn that the cap allows never takes hold, and its sender is told',
    turns: [ask(['haul', { ms: 100 }])],
    tools: ['haul'],
    async play(stage) {
      await stage.host();
      await stage.start({ max_turns: 1 });
      await stage.send('suspend', { reason: 'ebb', actor: 'mara' });
      await stage.wait(200);
    },
  },
  {
    name: 'suspension-expired',
    shows: 'the signal does not come, and the run fails with a code',
    turns: [say('Waiting for the pilot.', { delay_ms: 100 })],
    async play(stage) {
      await stage.host();
      await stage.start();
      await stage.send('suspend', { signal: 'pilot', for_ms: HOUR, on_timeout: 'fail' });
      await stage.wait(2 * HOUR);
    },
  },
  {
    name: 'parks-itself',
    shows: 'a session parks itself by a call, its host crashes and comes back while it sleeps, and its timer wakes it',
    turns: [ask(['park', { for_ms: 2 * HOUR, reason: 'slack water' }]), say('Going on.')],
    tools: ['park'],
    async play(stage) {
      await stage.host();
      await stage.start();
      await stage.wait(HOUR);
      stage.crash();
      await stage.host('relief');
      await stage.wait(2 * HOUR);
    },
  },
  {
    name: 'daemon-wakes-by-itself',
    shows: 'a daemon session wakes each time its interval is over, and is told why; hooks hear of each idling',
    turns: [say('On watch.'), say('All is well.'), say('All is still well.')],
    hooks: [at('session_idle')],
    async play(stage) {
      await stage.host();
      await stage.start({ persona: { name: 'watch', daemon: { wake_interval_ms: HOUR } } });
      await stage.wait(2 * HOUR + 1_000);
      await stage.send('cancel');
    },
  },
  {
    name: 'hooks-refuse-a-suspension',
    shows: 'a pre_suspend hook refuses a suspension: who asked is told, and the run ends as it would have ended',
    turns: [say('Aye.', { delay_ms: 100 })],
    hooks: [at('pre_suspend', { block: true, reason: 'not under way' })],
    async play(stage) {
      await stage.host();
      await stage.start();
      await stage.send('suspend');
      await stage.wait(200);
    },
  },
  {
    name: 'hooks-let-a-suspension-pass',
    shows: 'pre_suspend hooks have no objection, and post_resume hooks are asked before the session goes on',
    turns: [say('Aye.', { delay_ms: 100 }), say('Back on deck.')],
    hooks: [at('pre_suspend', true, { afterMs: 50 }), at('post_resume', undefined, { afterMs: 50 })],
    async play(stage) {
      await stage.host();
      await stage.start();
      await stage.send('suspend', { for_ms: HOUR });
      await stage.wait(2 * HOUR);
    },
  },
];
