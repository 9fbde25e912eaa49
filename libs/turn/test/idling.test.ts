/**
 * Daemons that idle between jobs, and suspended sessions: what wakes them, and what does not.
 */
import { describe, test } from 'vitest';
import { given } from './given.ts';
import {
  answered,
  asked,
  call,
  cancelled,
  followedUp,
  hook,
  type Move,
  prompted,
  provisioned,
  reminded,
  resumed,
  returned,
  running,
  started,
  steered,
  suspended,
  toolsClosed,
} from './moves.ts';
import { asleep, calling, ended, INTERRUPT, idled } from './openings.ts';

describe('a daemon', () => {
  const idle: Move = idled({ maxTurns: 2 });

  test('idles instead of ending the run', () => {
    given(running({ daemon: true }))
      .when(answered())
      .thenJournal(
        'message_complete "fine"',
        'loop_checkpoint iteration_end',
        'turn_end 1',
        'loop_checkpoint daemon_idle_pre',
      )
      .thenState('daemon_idle.waiting')
      .thenEffects();
  });

  test('delivers queued jobs before it idles', () => {
    given(running({ daemon: true }), followedUp('job'))
      .when(answered())
      .thenIncludes('message_injected job followup at steering_check', 'turn_start 2')
      .thenNever('loop_checkpoint daemon_idle_pre');
  });

  test('is woken by a follow-up, its next job', () => {
    given(idle)
      .when(followedUp('job'))
      .thenJournal(
        'followup_received job',
        'loop_checkpoint daemon_idle_post',
        'message_injected job followup at steering_check',
        'turn_start 2',
        'loop_checkpoint iteration_start',
        'loop_checkpoint pre_compact',
        'loop_checkpoint post_compact',
      );
  });

  test.each([
    ['a steer', steered('m')],
    ['a reminder', reminded('m')],
  ])('is woken by %s', (_name, wake) => {
    given(idle)
      .when(wake)
      .thenIncludes('loop_checkpoint daemon_idle_post', 'turn_start 2', 'loop_checkpoint iteration_start delivers m');
  });

  test('idles again after each job', () => {
    given(idle, followedUp('job1'), answered())
      .when(followedUp('job2'), answered())
      .thenIncludes('turn_start 3', 'loop_checkpoint daemon_idle_pre')
      .thenState('daemon_idle.waiting')
      .thenCount('agent_start', 1);
  });

  test('counts turns per job, from the last idling', () => {
    given(idle, followedUp('job1'), answered(), followedUp('job2'), answered())
      .when(followedUp('job3'), asked(call('a', 'read')), returned('a'))
      .thenIncludes('turn_start 4', 'turn_start 5')
      .thenState('assistant_streaming.streaming');
  });

  test('that answers in its last turn has done its job, and idles', () => {
    given(running({ daemon: true, maxTurns: 1 }))
      .when(answered())
      .thenState('daemon_idle.waiting');
  });

  test('that reaches the maximum of turns with work left ends as max_turns', () => {
    given(calling('read', { daemon: true, maxTurns: 1 }))
      .when(returned('a'), toolsClosed)
      .thenIncludes('agent_end max_turns');
    given(running({ daemon: true, maxTurns: 1 }), followedUp('job'))
      .when(answered(), toolsClosed)
      .thenIncludes('agent_end max_turns pending 1');
  });

  test('is running while it idles: a prompt is rejected as busy', () => {
    given(idle).when(prompted()).thenJournal('command_rejected session_busy prompt-1').thenState('daemon_idle.waiting');
  });

  test('can be cancelled while it idles', () => {
    given(idle)
      .when(cancelled())
      .thenJournal('control_outcome cancel cancelled', 'loop_checkpoint loop_exit')
      .when(toolsClosed)
      .thenIncludes('agent_end cancelled');
  });

  test('can be suspended while it idles, and idles again when it is resumed', () => {
    given(idle)
      .when(suspended())
      .thenJournal('suspend_requested suspend-1', 'control_outcome suspend suspending', 'suspended suspend-1')
      .thenState('suspended.parked')
      .when(resumed())
      .thenJournal(
        'control_outcome resume resumed',
        'resumed command resume-1',
        'message_injected suspend-1 direct at post_resume',
        'loop_checkpoint daemon_idle_pre',
      )
      .thenState('daemon_idle.waiting');
  });

  test('keeps a job that arrives while it is suspended, and starts it when it is resumed', () => {
    given(idle, suspended(), followedUp('job'))
      .when(resumed())
      .thenIncludes('message_injected job followup at steering_check', 'turn_start 2');
  });
});

describe('a suspension', () => {
  test('starts at the next turn boundary, after a plain answer', () => {
    given(running())
      .when(suspended())
      .thenJournal('suspend_requested suspend-1', 'control_outcome suspend suspending')
      .thenState('assistant_streaming.streaming')
      .when(answered())
      .thenJournal('message_complete "fine"', 'loop_checkpoint iteration_end', 'turn_end 1', 'suspended suspend-1')
      .thenState('suspended.parked')
      .thenEffects();
  });

  test('starts after a batch, and the next turn follows when it is resumed', () => {
    given(calling('read'), suspended())
      .when(returned('a'))
      .thenIncludes('turn_end 1', 'suspended suspend-1')
      .when(resumed())
      .thenIncludes('resumed command resume-1', 'turn_start 2');
  });

  test('after a plain answer, when it is resumed, ends the run as without it', () => {
    given(asleep())
      .when(resumed(), toolsClosed)
      .thenIncludes('resumed command resume-1', 'loop_checkpoint loop_exit', 'agent_end end_turn');
  });

  test('requested before the run has started starts after its first turn', () => {
    given(started(), suspended(), provisioned()).when(answered()).thenState('suspended.parked');
  });

  test('keeps steers and follow-ups, which are delivered when it is resumed', () => {
    given(asleep())
      .when(steered('m'), followedUp('f'))
      .thenJournal('steering_received m finish_step', 'followup_received f')
      .thenState('suspended.parked')
      .when(resumed())
      .thenIncludes('resumed command resume-1', 'turn_start 2', 'loop_checkpoint iteration_start delivers m')
      .when(answered())
      .thenIncludes('message_injected f followup at steering_check');
  });

  test.each([
    ['a steer', steered('m', INTERRUPT)],
    ['a reminder', reminded('m', INTERRUPT)],
  ])('is ended by %s that interrupts', (_name, wake) => {
    given(asleep())
      .when(wake)
      .thenIncludes('resumed interrupt m', 'turn_start 2', 'loop_checkpoint iteration_start delivers m');
  });

  test('requested twice is already_suspended', () => {
    given(running(), suspended())
      .when(suspended('suspend-2'))
      .thenJournal('command_rejected already_suspended suspend-2', 'control_outcome suspend already_suspended');
    given(asleep())
      .when(suspended('suspend-2'))
      .thenJournal('command_rejected already_suspended suspend-2', 'control_outcome suspend already_suspended');
  });

  test('can be requested again after its end', () => {
    given(calling('read'), suspended(), returned('a'), resumed())
      .when(suspended('suspend-2'), answered())
      .thenIncludes('suspended suspend-2');
  });

  test('a resume of a session that is not suspended is rejected', () => {
    given(running())
      .when(resumed())
      .thenJournal('command_rejected not_suspended resume-1', 'control_outcome resume not_suspended');
  });

  test('of a session that is not running is rejected, and so is a resume', () => {
    given(ended())
      .when(suspended(), resumed())
      .thenJournal(
        'command_rejected not_running suspend-1',
        'control_outcome suspend not_running',
        'command_rejected not_running resume-1',
        'control_outcome resume not_running',
      );
    given(running(), answered())
      .when(suspended())
      .thenJournal('command_rejected not_running suspend-1', 'control_outcome suspend not_running');
  });

  test('can be cancelled', () => {
    given(asleep())
      .when(cancelled(), toolsClosed)
      .thenIncludes('control_outcome cancel cancelled', 'agent_end cancelled')
      .thenNever('resumed');
  });

  test('is superseded by the maximum of turns', () => {
    given(calling('read', { maxTurns: 1 }), suspended())
      .when(returned('a'), toolsClosed)
      .thenIncludes('agent_end max_turns')
      .thenNever('suspended');
  });

  test('rejects a prompt: the session is busy', () => {
    given(asleep()).when(prompted()).thenJournal('command_rejected session_busy prompt-1');
  });

  test('waits for the hooks of its turn', () => {
    given(running({ hooks: [hook('post_turn')] }), suspended())
      .when(answered())
      .thenState('steering_check.post_turn');
  });
});
