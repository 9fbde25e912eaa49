/** Steering beyond one delivery at one seam: orders of arrival, drains, waits that are broken into. */
import { ask, type Scenario, say } from '../scenario.ts';
import { asking } from '../stage.ts';

/** See the top of the file. */
export const STEERING: readonly Scenario[] = [
  {
    name: 'steered-one-at-a-time',
    shows: 'a persona that drains steering one at a time takes three messages at three seams, in their order',
    turns: [ask(['haul', { ms: 100 }]), say('One.'), say('Two.'), say('Three.')],
    tools: ['haul'],
    async play(stage) {
      await stage.host();
      await stage.start({ persona: { name: 'mate', steering: { steering: 'one_at_a_time' } } });
      for (const body of ['First.', 'Second.', 'Third.']) await stage.send('steer', { body });
      await stage.wait(200);
    },
  },
  {
    name: 'interrupted-batch',
    shows: 'of three calls one runs when an interrupt arrives; those held back behind it are skipped, it ends first',
    turns: [ask(['haul', { ms: 100 }], ['look', { at: 'the bow' }], ['look', { at: 'aft' }]), say('Stopped.')],
    tools: ['haul', 'look'],
    async play(stage) {
      await stage.host();
      await stage.start({ limits: { parallel_calls: 1 } });
      await stage.send('steer', { body: 'Avast!', mode: 'interrupt' });
      await stage.wait(200);
    },
  },
  {
    name: 'interrupted-while-parked-and-running',
    shows:
      'a reminder that interrupts ends the parked call as skipped; its sibling goes on, and the turn ends with that',
    turns: [ask(['haul', { ms: 200 }], ['look', { at: 'the bow' }]), say('Stopped.')],
    tools: ['haul', 'look'],
    async play(stage) {
      await stage.host();
      await stage.start({ permissions: asking('look') });
      await stage.send('remind', { body: 'Shoals ahead.', mode: 'interrupt' });
      await stage.wait(300);
    },
  },
  {
    name: 'suspend-and-resume',
    shows: 'a session is suspended at the end of its turn, keeps what is sent meanwhile, and resumes',
    turns: [ask(['haul', { ms: 100 }]), say('Going on.'), say('Moored.')],
    tools: ['haul'],
    async play(stage) {
      await stage.host();
      await stage.start();
      await stage.send('suspend', { reason: 'lunch', actor: 'mara' });
      await stage.send('suspend');
      await stage.wait(200);
      await stage.send('steer', { body: 'After lunch, slower.' });
      await stage.send('followup', { body: 'Then moor.' });
      await stage.send('suspend');
      await stage.wait(3_600_000);
      await stage.send('resume');
      await stage.send('resume');
    },
  },
  {
    name: 'woken-by-an-interrupt',
    shows: 'an interrupt resumes a suspended session; suspended again with nothing left to do, it ends when it resumes',
    turns: [say('Aye.', { delay_ms: 100 }), say('I am here.', { delay_ms: 100 })],
    async play(stage) {
      await stage.host();
      await stage.start();
      await stage.send('suspend');
      await stage.wait(200);
      await stage.send('steer', { body: 'All hands!', mode: 'interrupt' });
      await stage.send('suspend');
      await stage.wait(200);
      await stage.send('resume');
    },
  },
  {
    name: 'daemon',
    shows: 'a daemon session idles between jobs, is woken by a follow-up and by a reminder, and is cancelled',
    turns: [say('On watch.'), ask(['look', { at: 'the horizon' }]), say('Clear.'), say('Noted.')],
    tools: ['look'],
    async play(stage) {
      await stage.host();
      await stage.start({ persona: { name: 'watch', daemon: {} } });
      await stage.send('steer', { body: 'For the log.', mode: 'audit_only' });
      await stage.wait(20_000);
      await stage.send('followup', { body: 'Look around.' });
      await stage.wait(20_000);
      await stage.send('remind', { body: 'Lamps at dusk.' });
      await stage.send('cancel', { reason: 'relieved' });
    },
  },
  {
    name: 'daemon-suspended',
    shows: 'an idle daemon session is suspended at once, and idles again; resumed, it takes all follow-ups together',
    turns: [say('On watch.'), say('Clear.')],
    async play(stage) {
      await stage.host();
      await stage.start({ persona: { name: 'watch', daemon: {}, steering: { followups: 'all' } } });
      await stage.send('suspend');
      await stage.send('resume');
      await stage.send('suspend');
      await stage.send('followup', { body: 'Look ahead.' });
      await stage.send('followup', { body: 'Look aft.' });
      await stage.send('resume');
    },
  },
];
