/**
 * Steering and reminders, seam by seam. Every scenario here puts in what it does through `inject`, so that each can be
 * played again with nothing queued.
 */
import type { SeamKind } from '@coxswain/protocol';
import { ask, type Scenario, say } from '../scenario.ts';
import { asking } from '../stage.ts';

/** Model answers and started calls of a whole trace. */
export interface Work {
  readonly answers: number;
  readonly calls: number;
}

/** A scenario that delivers at a seam, what it costs, and what the same run costs with nothing queued. */
export interface SeamScenario extends Scenario {
  readonly delivers: SeamKind;
  readonly work: { readonly queued: Work; readonly control: Work };
}

/** See the top of the file. */
export const SEAM_DELIVERIES: readonly SeamScenario[] = [
  {
    name: 'seam-iteration-start',
    shows: 'a steer that came while the session was stopped is delivered at the top of the next run',
    delivers: 'iteration_start',
    // It rides in a request that is made in any case.
    work: { queued: { answers: 2, calls: 0 }, control: { answers: 2, calls: 0 } },
    turns: [say('Aye.'), say('Aye again.')],
    async play(stage) {
      await stage.host();
      await stage.start();
      await stage.inject('steer', { body: 'Keep to port.' });
      await stage.send('prompt', { body: 'Go on.' });
    },
  },
  {
    name: 'seam-pre-compact',
    shows: 'what a tool tells beside its result reaches the model before its next answer, as no person speaks',
    delivers: 'pre_compact',
    work: { queued: { answers: 2, calls: 1 }, control: { answers: 2, calls: 1 } },
    turns: [ask(['creak', { times: 1 }]), say('I heard it.')],
    tools: ['creak'],
    async play(stage) {
      await stage.host();
      await stage.start();
    },
  },
  {
    name: 'seam-pre-compact-too-much',
    shows: 'of feedback beyond the bound the model is told how much there was',
    delivers: 'pre_compact',
    work: { queued: { answers: 2, calls: 1 }, control: { answers: 2, calls: 1 } },
    turns: [ask(['creak', { times: 66 }]), say('I heard it.')],
    tools: ['creak'],
    async play(stage) {
      await stage.host();
      await stage.start();
    },
  },
  {
    name: 'seam-pre-tool-dispatch',
    shows: 'an interrupt that came during the answer stops both calls of it before either is sent',
    delivers: 'pre_tool_dispatch',
    // The control runs the two calls that the interrupt stops.
    work: { queued: { answers: 2, calls: 0 }, control: { answers: 2, calls: 2 } },
    turns: [{ ...ask(['look', { at: 'the bow' }], ['haul', { ms: 10 }]), delay_ms: 100 }, say('Stopped.')],
    tools: ['look', 'haul'],
    async play(stage) {
      await stage.host();
      await stage.start();
      await stage.inject('steer', { body: 'Avast!', mode: 'interrupt' });
      await stage.wait(200);
    },
  },
  {
    name: 'seam-pre-tool-dispatch-parked',
    shows:
      'an interrupt while a call is parked: its approval is superseded, a late decision rejected; a reminder waits',
    delivers: 'pre_tool_dispatch',
    work: { queued: { answers: 2, calls: 0 }, control: { answers: 2, calls: 1 } },
    turns: [ask(['haul', { ms: 10 }]), say('Understood.')],
    tools: ['haul'],
    async play(stage) {
      await stage.host();
      await stage.start({ permissions: asking('haul') });
      await stage.inject('remind', { body: 'Fuel is low.' });
      await stage.inject('steer', { body: 'Avast!', mode: 'interrupt' });
      await stage.send('approve', { call_id: 'c1_1', decision: 'allow' });
      await stage.wait(100);
    },
  },
  {
    name: 'seam-post-tool-dispatch',
    shows: 'a steer that came while a call ran is delivered after its result',
    delivers: 'post_tool_dispatch',
    work: { queued: { answers: 2, calls: 1 }, control: { answers: 2, calls: 1 } },
    turns: [ask(['haul', { ms: 100 }]), say('Done.')],
    tools: ['haul'],
    async play(stage) {
      await stage.host();
      await stage.start();
      await stage.inject('steer', { body: 'Easy now.', actor: 'mara' });
      await stage.inject('remind', { body: 'The tide turns at six.' });
      await stage.wait(200);
    },
  },
  {
    name: 'seam-post-tool-dispatch-terminating',
    shows: 'a steer delivered after a terminating batch makes the run take another turn',
    delivers: 'post_tool_dispatch',
    work: { queued: { answers: 2, calls: 1 }, control: { answers: 1, calls: 1 } },
    turns: [{ ...ask(['moor']), delay_ms: 100 }, say('Not yet, then.')],
    tools: ['moor'],
    async play(stage) {
      await stage.host();
      await stage.start();
      await stage.inject('steer', { body: 'Stay out a little longer.' });
      await stage.wait(200);
    },
  },
  {
    name: 'seam-iteration-end',
    shows: 'a steer that came during a plain answer makes the run take another turn, as the run would otherwise end',
    delivers: 'iteration_end',
    work: { queued: { answers: 2, calls: 0 }, control: { answers: 1, calls: 0 } },
    turns: [say('Done.', { delay_ms: 100 }), say('That too.')],
    async play(stage) {
      await stage.host();
      await stage.start();
      await stage.inject('steer', { body: 'And the sails?' });
      await stage.wait(200);
    },
  },
  {
    name: 'seam-daemon-idle-pre',
    shows: 'an interrupt that came while session_idle hooks were asked keeps a daemon session from idling',
    delivers: 'daemon_idle_pre',
    work: { queued: { answers: 2, calls: 0 }, control: { answers: 1, calls: 0 } },
    turns: [say('On watch.'), say('I see it.')],
    hooks: [{ registration: { id: 'watch', point: 'session_idle' }, afterMs: 100 }],
    async play(stage) {
      await stage.host();
      await stage.start({ persona: { name: 'watch', daemon: {} } });
      await stage.inject('steer', { body: 'A light to starboard!', mode: 'interrupt' });
      await stage.wait(1_000);
    },
  },
  {
    name: 'preempted-answer',
    shows: 'an interrupt that does not wait ends the answer that streams; what had been said stays, marked as partial',
    delivers: 'iteration_end',
    work: { queued: { answers: 2, calls: 0 }, control: { answers: 1, calls: 0 } },
    turns: [say('We could also go round by the north', { chunk_ms: 100 }), say('Through the sound, then.')],
    async play(stage) {
      await stage.host();
      await stage.start();
      await stage.wait(350);
      await stage.inject('steer', { body: 'Through the sound!', preempt: true });
      await stage.wait(1_000);
    },
  },
  {
    name: 'preempted-calls',
    shows: 'an interrupt that does not wait cancels the calls in flight; one that does not stop is given up',
    delivers: 'post_tool_dispatch',
    work: { queued: { answers: 2, calls: 2 }, control: { answers: 2, calls: 2 } },
    turns: [ask(['haul', { ms: 20_000 }], ['drift', { ms: 30_000 }]), say('Stopped.')],
    tools: ['haul', 'drift'],
    async play(stage) {
      await stage.host();
      await stage.start();
      await stage.inject('steer', { body: 'Avast, all of it!', mode: 'interrupt', preempt: true });
      await stage.wait(60_000);
    },
  },
  {
    name: 'seam-daemon-idle-post',
    shows: 'an interrupt wakes an idle daemon session',
    delivers: 'daemon_idle_post',
    work: { queued: { answers: 2, calls: 0 }, control: { answers: 1, calls: 0 } },
    turns: [say('On watch.'), say('I see it.')],
    async play(stage) {
      await stage.host();
      await stage.start({ persona: { name: 'watch', daemon: {} } });
      await stage.wait(10_000);
      await stage.inject('steer', { body: 'A light to starboard!', mode: 'interrupt' });
    },
  },
  {
    name: 'seam-loop-exit',
    shows: 'an audit-only note lands in the transcript at the end; no model sees it and no answer is asked for',
    delivers: 'loop_exit',
    work: { queued: { answers: 1, calls: 0 }, control: { answers: 1, calls: 0 } },
    turns: [say('Done.', { delay_ms: 100 })],
    async play(stage) {
      await stage.host();
      await stage.start();
      await stage.inject('steer', { body: 'Checked by the harbour office.', mode: 'audit_only' });
      await stage.inject('remind', { body: 'Filed.', mode: 'audit_only' });
      await stage.wait(200);
    },
  },
];
