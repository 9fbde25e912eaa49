/** What the world does to a session: models and tools that fail, hosts that crash. */
import { BOUNDS } from '@coxswain/protocol';
import { ask, type Scenario, say } from '../scenario.ts';
import { asking } from '../stage.ts';

/** See the top of the file. */
export const FAILURES: readonly Scenario[] = [
  {
    name: 'model-broken-off',
    shows: 'an answer that breaks off is kept as partial, and the run fails; a prompt begins the next one',
    turns: [say('one two three', { chunk_ms: 100, fail: { kind: 'network', after_ms: 150 } }), say('Here again.')],
    async play(stage) {
      await stage.host();
      await stage.start();
      await stage.wait(500);
      await stage.send('prompt', { body: 'Go on.' });
      await stage.wait(500);
    },
  },
  {
    name: 'provisioning-failed',
    shows: 'a persona that nobody knows ends the run in its beginning; a steer that waits stays for the next run',
    turns: [say('Never said.')],
    async play(stage) {
      await stage.host();
      stage.publish('start', { prompt: 'Take her out.', persona: 'nobody', model: 'scripted/deck.yaml' });
      stage.publish('steer', { body: 'Keep to port.' });
      await stage.time.settle();
    },
  },
  {
    name: 'tools-not-opened',
    shows: 'tools that cannot be opened end the run in its beginning',
    turns: [say('Never said.')],
    trouble: { toolsDoNotOpen: true },
    async play(stage) {
      await stage.host();
      await stage.start();
    },
  },
  {
    name: 'session-failed',
    shows: 'a port that breaks its contract ends the run as failed, through the same teardown',
    turns: [say('Never said.')],
    trouble: { modelRejects: true },
    async play(stage) {
      await stage.host();
      await stage.start();
    },
  },
  {
    name: 'crash-mid-call',
    shows: 'the host crashes while two calls run: one may run again and does, the other is reported as interrupted',
    turns: [ask(['haul', { ms: 500 }], ['sound', { ms: 500 }]), say('Going on.')],
    tools: ['haul', 'sound'],
    async play(stage) {
      await stage.host();
      await stage.start();
      await stage.wait(100);
      stage.crash();
      await stage.wait(2_000);
      await stage.host('relief');
      await stage.wait(1_000);
    },
  },
  {
    name: 'crash-asks',
    shows:
      'a call that a crash has left in doubt waits for a person, who has it run again; after the next crash, not again',
    turns: [ask(['haul', { ms: 500 }]), ask(['haul', { ms: 500 }]), say('Going on.')],
    tools: ['haul'],
    async play(stage) {
      await stage.host();
      await stage.start({ persona: { name: 'mate', on_unknown_outcome: 'ask' } });
      await stage.wait(100);
      stage.crash();
      await stage.host('relief');
      await stage.send('approve', { call_id: 'c1_1', decision: 'allow' });
      await stage.wait(600);
      stage.crash();
      await stage.host('second-relief');
      await stage.send('approve', { call_id: 'c2_1', decision: 'deny', reason: 'once is enough' });
      await stage.wait(100);
    },
  },
  {
    name: 'call-taken-up',
    shows: 'a call that somebody has taken up outlives its host, and comes back as a command; a second one is refused',
    turns: [ask(['tow']), say('Towed.')],
    tools: ['tow'],
    async play(stage) {
      await stage.host();
      await stage.start();
      stage.crash();
      await stage.host('relief');
      const outcome = {
        call_id: 'c1_1',
        effect_id: '3-0',
        epoch: 1,
        status: 'ok',
        result: { content: [{ type: 'text', text: 'Towed to the pier.' }], is_error: false },
      };
      await stage.send('call_outcome', { ...outcome, epoch: 9 });
      await stage.send('call_outcome', outcome);
      await stage.send('call_outcome', outcome);
      await stage.wait(100);
    },
  },
  {
    name: 'crash-mid-answer',
    shows: 'the host crashes in the middle of an answer: the next one asks the model again',
    turns: [say('one two three', { chunk_ms: 100 })],
    async play(stage) {
      await stage.host();
      await stage.start();
      await stage.wait(150);
      stage.crash();
      await stage.host('relief');
      await stage.wait(500);
    },
  },
  {
    name: 'crash-while-parked',
    shows:
      'the host crashes while a call is parked; the next leaves it parked, the one after that takes commands sent meanwhile',
    turns: [ask(['haul', { ms: 50 }]), say('Done.')],
    tools: ['haul'],
    async play(stage) {
      await stage.host();
      await stage.start({ permissions: asking('haul') });
      stage.crash();
      await stage.host('relief');
      stage.crash();
      stage.publish('steer', { body: 'Gently.' });
      stage.publish('approve', { call_id: 'c1_1', decision: 'allow' });
      await stage.host('second-relief');
      await stage.wait(100);
    },
  },
  {
    name: 'crash-too-often',
    shows: 'an answer that hosts crash over once more than is allowed ends the run',
    turns: [say('Never said.', { delay_ms: 60_000 })],
    async play(stage) {
      await stage.host();
      await stage.start();
      for (let i = 1; i <= BOUNDS.modelRestartsMax + 1; i++) {
        stage.crash();
        await stage.host(`relief-${i}`);
      }
    },
  },
];
