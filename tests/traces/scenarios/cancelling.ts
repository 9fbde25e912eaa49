/** Runs and calls that people cancel, in every state, and commands that are rejected. */
import { ask, type Scenario, say } from '../scenario.ts';

/** See the top of the file. */
export const CANCELLING: readonly Scenario[] = [
  {
    name: 'cancel-while-streaming',
    shows: 'the run is cancelled in the middle of an answer; what was said by then is kept, as partial',
    turns: [say('one two three four five', { chunk_ms: 100 })],
    async play(stage) {
      await stage.host();
      await stage.start();
      await stage.wait(250);
      await stage.send('cancel', { reason: 'fog', actor: 'mara' });
      await stage.send('cancel');
    },
  },
  {
    name: 'cancel-with-calls-running',
    shows: 'the run is cancelled while two calls run and one is held back; one stops at once, one only after its grace',
    turns: [ask(['haul', { ms: 9_000 }], ['drift', { ms: 7_000 }], ['look', { at: 'aft' }])],
    tools: ['haul', 'drift', 'look'],
    async play(stage) {
      await stage.host();
      await stage.start({ limits: { parallel_calls: 2 } });
      await stage.wait(100);
      await stage.send('cancel', { reason: 'fog' });
      await stage.send('steer', { body: 'For the next run.' });
      // A repetition while it unwinds is told the first reason.
      await stage.send('cancel', { reason: 'rain' });
      await stage.send('suspend');
      await stage.wait(10_000);
    },
  },
  {
    name: 'cancel-while-provisioning',
    shows: 'a run that is cancelled before its tools are open begins and ends once all the same',
    turns: [say('Never said.')],
    trouble: { openingTakesMs: 1_000 },
    async play(stage) {
      await stage.host();
      await stage.start();
      await stage.wait(500);
      await stage.send('cancel');
      await stage.wait(2_000);
    },
  },
  {
    name: 'cancel-call',
    shows: 'of four calls one stops when it is cancelled, one does not, one has not been sent yet, one goes on',
    turns: [
      ask(['haul', { ms: 9_000 }], ['drift', { ms: 8_000 }], ['haul', { ms: 2_000 }], ['haul', { ms: 2_001 }]),
      // Long enough for the call that did not stop: its late answer is dropped.
      say('Going on.', { delay_ms: 10_000 }),
    ],
    tools: ['haul', 'drift'],
    async play(stage) {
      await stage.host();
      await stage.start({ limits: { parallel_calls: 3 } });
      await stage.send('cancel_call', { call_id: 'c1_4' });
      await stage.send('cancel_call', { call_id: 'c1_1', reason: 'wrong line', actor: 'mara' });
      await stage.send('cancel_call', { call_id: 'c1_1', reason: 'again' });
      await stage.send('cancel_call', { call_id: 'c1_7' });
      await stage.send('cancel_call', { call_id: 'c1_2', timeout_ms: 1_000, inject_reminder: false });
      await stage.wait(20_000);
    },
  },
  {
    name: 'rejected-commands',
    shows:
      'commands that cannot be read or do not fit the state are recorded as rejected; a repeated one leaves no record',
    turns: [ask(['haul', { ms: 1_000 }]), say('Done.')],
    tools: ['haul'],
    async play(stage) {
      await stage.host();
      await stage.start();
      await stage.send('start', { prompt: 'Again.', model: 'scripted/deck.yaml' });
      await stage.send('prompt', { body: 'Now.' });
      await stage.send('steer', { body: ' ' });
      await stage.send('steer', { body: 'Now.', mode: 'loudly' });
      await stage.send('steer', { body: 'Now.', volume: 11 });
      await stage.send('steer', '{"body": ');
      await stage.send('remind', { body: 'Soon.', ttl_turns: 2 });
      await stage.send('sail', {});
      await stage.send('timer', {});
      await stage.send('approve', { call_id: 'c1_1', decision: 'allow' });
      await stage.send('approve', { call_id: 'c9_9', decision: 'allow' });
      await stage.send('resume');
      await stage.send('steer', { body: 'Once.' }, 'once');
      await stage.send('steer', { body: 'Once.' }, 'once');
      await stage.wait(2_000);
      await stage.send('start', { prompt: 'Again.', model: 'scripted/deck.yaml' });
      await stage.send('cancel');
      await stage.send('cancel_call', { call_id: 'c1_1' });
    },
  },
];
