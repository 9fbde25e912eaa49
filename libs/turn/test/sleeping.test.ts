/**
 * Suspensions with conditions, sessions that park themselves, daemons with a wake interval, and their timers.
 */
import { BOUNDS, type EventOf, textOf } from '@coxswain/protocol';
import { describe, expect, test } from 'vitest';
import { durationText } from '../src/slices/suspension/suspension.ts';
import { given, type Outcome } from './given.ts';
import {
  answered,
  asked,
  call,
  callCancelled,
  cancelled,
  Failing,
  followedUp,
  hook,
  hooksCancelled,
  hooksSaid,
  later,
  type Move,
  modelFailed,
  modelStopped,
  owned,
  prompted,
  provisioned,
  reminded,
  resumed,
  returned,
  revoked,
  running,
  signalled,
  started,
  steered,
  suspended,
  timerFires,
  toolsClosed,
  using,
} from './moves.ts';
import { calling, ended, INTERRUPT, idled } from './openings.ts';

const HOUR = 3_600_000;

/** A session suspended after a batch, with a turn to continue. */
const parked = (body = {}): Move => [calling('read'), suspended('suspend-1', body), returned('a')];

/** The runtime's messages to the model, in order. */
function told(outcome: Outcome): string[] {
  return outcome.session.steps
    .flatMap((step) => step.events)
    .filter((event): event is EventOf<'message_injected'> => event.type === 'message_injected')
    .filter(({ origin }) => origin === 'direct')
    .map(({ message }) => `${message.role}: ${textOf(message)}`);
}

describe('a suspension until a time', () => {
  test('has a timer from its start, and ends when the timer fires', () => {
    const outcome = given(parked({ until: '1970-01-01T01:00:00Z' }))
      .when()
      .thenState('suspended.parked')
      .thenEffects(`timer suspension at ${HOUR}`)
      .when(later(HOUR), timerFires)
      .thenJournal(
        'timer_fired suspension',
        'resumed timeout',
        'message_injected suspend-1 direct at post_resume',
        'turn_start 2',
        'loop_checkpoint iteration_start',
        'loop_checkpoint pre_compact',
        'loop_checkpoint post_compact',
      )
      .thenEffects('call_model');
    expect(told(outcome)).toEqual([
      'reminder: The session was suspended. It slept for 1 h, from 1970-01-01T00:00:00.000Z to 1970-01-01T01:00:00.000Z. It waited until 1970-01-01T01:00:00.000Z, and that time was reached.',
    ]);
  });

  test('for a duration is counted from its start, not from its request', () => {
    given(running(), suspended('suspend-1', { for_ms: HOUR }), later(5 * HOUR))
      .when(answered())
      .thenIncludes(`suspended suspend-1 until ${6 * HOUR}`)
      .thenEffects(`timer suspension at ${6 * HOUR}`);
  });

  test('in any time zone is the same moment', () => {
    given(parked({ until: '1970-01-01T03:00:00+02:00' }))
      .when()
      .thenEffects(`timer suspension at ${HOUR}`);
  });

  test('in the past is rejected, with the field', () => {
    given(running(), later(2 * HOUR))
      .when(suspended('suspend-1', { until: '1970-01-01T01:00:00Z' }))
      .thenJournal('command_rejected invalid_field suspend-1', 'control_outcome suspend invalid_field')
      .thenEvent('command_rejected', { field: 'until' });
  });

  test('at the present moment is in the past, the next millisecond is not', () => {
    given(running(), later(HOUR))
      .when(suspended('now', { until: '1970-01-01T01:00:00.000Z' }))
      .thenJournal('command_rejected invalid_field now', 'control_outcome suspend invalid_field')
      .when(suspended('next', { until: '1970-01-01T01:00:00.001Z' }))
      .thenIncludes('control_outcome suspend suspending');
  });

  test('more than ten years away is rejected', () => {
    const until = (ms: number) => ({ until: new Date(ms).toISOString() });
    given(running())
      .when(suspended('far', until(BOUNDS.longWaitMaxMs + 1)))
      .thenJournal('command_rejected invalid_field far', 'control_outcome suspend invalid_field')
      .when(suspended('near', until(BOUNDS.longWaitMaxMs)))
      .thenIncludes('control_outcome suspend suspending');
  });

  test('gives the model a turn even if the run would have ended', () => {
    given(running(), suspended('suspend-1', { for_ms: HOUR }), answered())
      .when(later(HOUR), timerFires)
      .thenIncludes('resumed timeout', 'turn_start 2')
      .when(answered(), toolsClosed)
      .thenIncludes('agent_end end_turn');
  });

  test('with an input is resumed with it, as a user message after the reminder', () => {
    const outcome = given(parked({ for_ms: HOUR, on_timeout: 'resume_with_input', input: 'look again' }))
      .when(later(HOUR), timerFires)
      .thenIncludes(
        'resumed timeout',
        'message_injected suspend-1 direct at post_resume',
        'message_injected suspend-1 direct at post_resume',
        'turn_start 2',
      );
    expect(told(outcome).map((text) => text.split(':')[0])).toEqual(['reminder', 'user']);
    expect(told(outcome)[1]).toBe('user: look again');
  });

  test('with an input does not deliver it if it was resumed earlier', () => {
    const outcome = given(parked({ for_ms: HOUR, on_timeout: 'resume_with_input', input: 'look again' })).when(
      resumed(),
    );
    expect(told(outcome)).toHaveLength(1);
  });

  test('with on_timeout fail ends the run in error, with a code', () => {
    given(parked({ for_ms: HOUR, on_timeout: 'fail' }))
      .when(later(HOUR), timerFires, toolsClosed)
      .thenIncludes('timer_fired suspension', 'run_failed suspension suspension_expired', 'agent_end error')
      .thenNever('resumed')
      .thenState('failed');
  });

  test('leaves its timer, which is ignored after the end', () => {
    const outcome = given(parked({ for_ms: HOUR })).when();
    const timer = { type: 'timer', effect_id: '4-0', due_at_ms: HOUR } as const;
    outcome.when(resumed()).thenEffects('call_model').when(later(HOUR), timer).thenNothing('no pending timer 4-0');
    outcome.when(cancelled()).when(timer).thenNothing();
  });

  test('is not ended by the timer of an earlier one', () => {
    given(parked({ for_ms: HOUR }), resumed(), suspended('suspend-2', { for_ms: HOUR }), later(1_000), answered())
      .when({ type: 'timer', effect_id: '4-0', due_at_ms: HOUR })
      .thenNothing()
      .thenState('suspended.parked')
      .thenEffects(`timer suspension at ${HOUR + 1_000}`);
  });

  test('is not ended by a timer with another time', () => {
    given(parked({ for_ms: HOUR }))
      .when({ type: 'timer', effect_id: '4-0', due_at_ms: 1 })
      .thenNothing();
  });

  test('keeps its timer, under the same id, when another host claims the session', () => {
    const outcome = given(parked({ for_ms: HOUR })).when(owned(2));
    outcome.thenEffects(`timer suspension at ${HOUR}`).when(later(HOUR), timerFires).thenIncludes('resumed timeout');
  });

  test('at the maximum of turns ends the run when its time has come', () => {
    given(running({ maxTurns: 1 }), suspended('suspend-1', { for_ms: HOUR }), answered())
      .when(later(HOUR), timerFires, toolsClosed)
      .thenIncludes('resumed timeout', 'agent_end max_turns')
      .thenNever('turn_start 2');
  });
});

describe('a suspension until a signal', () => {
  test('is ended by it, and the model gets its data', () => {
    const outcome = given(parked({ signal: 'deployed', reason: 'the build' }))
      .when(later(90_000), signalled('deployed', 's', { version: '1.4', at: [1] }))
      .thenIncludes('signal_received deployed s', 'resumed signal s', 'turn_start 2')
      .thenEvent('resumed', { slept_ms: 90_000 });
    expect(told(outcome)).toEqual([
      'reminder: The session was suspended (the build). It slept for 1 min 30 s, from 1970-01-01T00:00:00.000Z to 1970-01-01T00:01:30.000Z. The signal "deployed" arrived with this data: {"at":[1],"version":"1.4"}',
    ]);
  });

  test('is not ended by another one, which is stored', () => {
    given(parked({ signal: 'deployed' }))
      .when(signalled('other'))
      .thenJournal('signal_received other signal-other', 'control_outcome signal stored')
      .thenState('suspended.parked');
  });

  test('is ended immediately by an earlier one', () => {
    given(running(), signalled('deployed'), suspended('suspend-1', { signal: 'deployed' }))
      .when(answered())
      .thenIncludes('suspended suspend-1 or deployed', 'resumed signal signal-deployed', 'turn_start 2');
  });

  test('takes the oldest with its name, once', () => {
    const outcome = given(running(), signalled('go', 's1', 1), signalled('go', 's2', 2))
      .when(suspended('suspend-1', { signal: 'go' }), answered())
      .thenIncludes('resumed signal s1')
      .when(suspended('suspend-2', { signal: 'go' }), answered())
      .thenIncludes('resumed signal s2')
      .when(suspended('suspend-3', { signal: 'go' }), answered())
      .thenState('suspended.parked');
    expect(told(outcome)).toHaveLength(2);
  });

  test('that did not arrive in time is reported to the model', () => {
    const outcome = given(parked({ signal: 'deployed', for_ms: HOUR }))
      .when()
      .thenEffects(`timer suspension at ${HOUR}`)
      .when(later(HOUR), timerFires);
    expect(told(outcome)[0]).toContain(
      'It waited for the signal "deployed" until 1970-01-01T01:00:00.000Z, and the signal did not arrive.',
    );
  });

  test('that arrived in time leaves no failure', () => {
    given(parked({ signal: 'deployed', for_ms: HOUR, on_timeout: 'fail' }))
      .when(signalled('deployed'))
      .thenIncludes('resumed signal signal-deployed')
      .thenNever('run_failed');
  });
});

describe('signals', () => {
  test('are stored up to their bound', () => {
    const many = Array.from({ length: BOUNDS.signalsStoredMax }, (_, i) => signalled('x', `s${i}`));
    given(running(), many)
      .when(signalled('x', 'over'))
      .thenJournal('command_rejected too_many_signals over', 'control_outcome signal too_many_signals');
    given(running(), many.slice(1))
      .when(signalled('x', 'at'))
      .thenJournal('signal_received x at', 'control_outcome signal stored');
  });

  test('at their bound still wake the session that waits for one', () => {
    const many = Array.from({ length: BOUNDS.signalsStoredMax }, (_, i) => signalled('x', `s${i}`));
    given(parked({ signal: 'go' }), many)
      .when(signalled('go'))
      .thenIncludes('resumed signal signal-go');
  });

  test('to a session without a run are rejected', () => {
    given(ended())
      .when(signalled('go'))
      .thenJournal('command_rejected not_running signal-go', 'control_outcome signal not_running');
    given(running(), answered())
      .when(signalled('go'))
      .thenJournal('command_rejected not_running signal-go', 'control_outcome signal not_running');
  });

  test('belong to their run: the next one does not find them', () => {
    const { state } = given(running(), signalled('go'), answered(), toolsClosed, prompted());
    expect(state.context.signals).toEqual([]);
  });
});

describe('a suspended session is woken by', () => {
  test('an interrupt, whatever it waits for, and the reminder says so', () => {
    const outcome = given(parked({ signal: 'deployed', for_ms: HOUR }))
      .when(later(1_500), steered('m', INTERRUPT))
      .thenIncludes('resumed interrupt m', 'turn_start 2', 'loop_checkpoint iteration_start delivers m');
    expect(told(outcome)[0]).toMatch(/It slept for 1.5 s, .* A message woke it\.$/);
  });

  test('an interrupt after the request of the suspension that was delivered before its start', () => {
    given(calling('read'), suspended(), steered('m', INTERRUPT))
      .when(returned('a'))
      .thenIncludes(
        'loop_checkpoint post_tool_dispatch delivers m',
        'suspended suspend-1',
        'resumed interrupt m',
        'turn_start 2',
      );
  });

  describe('but not by an interrupt that never reaches the model:', () => {
    const asks: Move = [calling('read'), suspended()];
    const keyed = (id: string, mode: string) => steered(id, mode, { dedupe_key: 'k' });

    test('one that was revoked before its delivery', () => {
      given(asks, steered('m', INTERRUPT), revoked('m'))
        .when(returned('a'))
        .thenIncludes('loop_checkpoint post_tool_dispatch', 'suspended suspend-1')
        .thenState('suspended.parked');
    });

    test('one replaced by a newer message that does not interrupt', () => {
      given(asks, keyed('m', INTERRUPT), keyed('n', 'finish_step'))
        .when(returned('a'))
        .thenIncludes('loop_checkpoint post_tool_dispatch delivers n', 'suspended suspend-1')
        .thenState('suspended.parked');
    });

    test('the newer message counts, if it interrupts', () => {
      given(asks, keyed('m', INTERRUPT), keyed('n', INTERRUPT))
        .when(returned('a'))
        .thenIncludes('loop_checkpoint post_tool_dispatch delivers n', 'suspended suspend-1', 'resumed interrupt n');
      given(asks, keyed('m', 'finish_step'), keyed('n', INTERRUPT))
        .when(returned('a'))
        .thenIncludes('loop_checkpoint post_tool_dispatch delivers n', 'suspended suspend-1', 'resumed interrupt n');
    });

    test('the next one counts, if it was delivered', () => {
      given(asks, steered('m', INTERRUPT), steered('n', INTERRUPT), revoked('m'))
        .when(returned('a'))
        .thenIncludes('loop_checkpoint post_tool_dispatch delivers n', 'suspended suspend-1', 'resumed interrupt n');
    });
  });

  test('an interrupt that hooks accepted after the request, although it arrived before', () => {
    const guarded = { hooks: [hook('user_prompt_submit')] };
    const way: Move = [running(guarded), hooksSaid(undefined), asked(call('a', 'read')), steered('m', INTERRUPT)];
    given(way, suspended(), hooksSaid(undefined))
      .when(returned('a'))
      .thenIncludes('loop_checkpoint post_tool_dispatch delivers m', 'suspended suspend-1', 'resumed interrupt m');
  });

  test('not by an interrupt for an earlier suspension that was withdrawn', () => {
    given(calling('read', { steering: 'one_at_a_time' }), suspended(), steered('l'))
      .when(steered('m', INTERRUPT), resumed(), suspended('suspend-2'), returned('a'))
      // The first delivered message is not an interrupt; the next one waits and wakes the session.
      .thenIncludes('loop_checkpoint post_tool_dispatch delivers l', 'suspended suspend-2', 'resumed interrupt m');
    given(calling('read'), suspended(), steered('m', INTERRUPT), resumed())
      .when(suspended('suspend-2'), returned('a'))
      .thenIncludes('loop_checkpoint post_tool_dispatch delivers m', 'suspended suspend-2')
      .thenState('suspended.parked');
  });

  describe('with several possible reasons, by the first of these:', () => {
    const both = parked({ signal: 'deployed', for_ms: HOUR });

    test('a resume, before a time limit in the same suspension', () => {
      given(both, later(HOUR)).when(resumed()).thenIncludes('resumed command resume-1').thenNever('timer_fired');
    });

    test('a message that arrived during the hooks, before a stored signal', () => {
      given(
        running({ hooks: [hook('pre_suspend')] }),
        signalled('deployed'),
        suspended('suspend-1', { signal: 'deployed' }),
      )
        .when(answered(), steered('m', INTERRUPT), hooksSaid(undefined))
        .thenIncludes('suspended suspend-1 or deployed', 'resumed interrupt m')
        .thenNever('resumed signal');
    });

    test('a signal in time, whose timer is ignored later', () => {
      const outcome = given(both, later(HOUR)).when(signalled('deployed'));
      outcome.thenIncludes('resumed signal signal-deployed');
      outcome.when({ type: 'timer', effect_id: '4-0', due_at_ms: HOUR }).thenNothing('no pending timer 4-0');
    });
  });

  test('not an interrupt that arrived before the request', () => {
    given(calling('read'), steered('m', INTERRUPT), suspended())
      .when(returned('a'))
      .thenIncludes('loop_checkpoint post_tool_dispatch delivers m', 'suspended suspend-1')
      .thenState('suspended.parked');
  });

  test.each([
    ['a steer', steered('m')],
    ['a reminder', reminded('m')],
    ['a follow-up', followedUp('m')],
    ['what is for the record only', steered('m', 'audit_only')],
  ])('not %s: it stays queued', (_name, word) => {
    given(parked()).when(word).thenState('suspended.parked').thenNever('resumed');
  });

  test('a resume before its start withdraws a suspension', () => {
    given(running(), suspended('suspend-1', { for_ms: HOUR }))
      .when(resumed())
      .thenJournal('control_outcome resume resumed')
      .when(answered(), toolsClosed)
      .thenNever('suspended')
      .thenIncludes('agent_end end_turn');
  });
});

describe('a session that parks itself', () => {
  const parks = (park = {}): Move => [calling('read'), returned('a', 'ok', { park })];

  test('is suspended at the end of the turn, under its call', () => {
    given(calling('read'))
      .when(returned('a', 'ok', { park: { for_ms: HOUR, reason: 'wait for the tide' } }))
      .thenJournal(
        'call_ended a ok',
        'suspend_requested a',
        'loop_checkpoint post_tool_dispatch',
        'turn_end 1',
        `suspended a until ${HOUR}`,
      )
      .thenEffects(`timer suspension at ${HOUR}`);
  });

  test('continues when its time has come, and the model reads that it parked itself', () => {
    const outcome = given(parks({ for_ms: HOUR, reason: 'wait for the tide' }))
      .when(later(HOUR), timerFires)
      .thenIncludes('resumed timeout', 'turn_start 2');
    expect(told(outcome)[0]).toMatch(/^reminder: You parked this session \(wait for the tide\)\. It slept for 1 h/);
  });

  test('waits for the other calls of the batch', () => {
    given(running(), asked(call('a', 'read'), call('b', 'read')), returned('a', 'ok', { park: {} }))
      .when()
      .thenState('function_execute.running')
      .when(returned('b'))
      .thenIncludes('call_ended b ok', 'turn_end 1', 'suspended a');
  });

  test('is prevented from it by a message that its last seam delivers', () => {
    given(calling('read'), steered('m'))
      .when(returned('a', 'ok', { park: {} }))
      .thenIncludes('suspend_requested a', 'loop_checkpoint post_tool_dispatch delivers m', 'turn_start 2')
      .thenNever('suspended')
      .when(answered(), toolsClosed)
      .thenNever('suspended')
      .thenIncludes('agent_end end_turn');
  });

  // The result must not claim a suspension that was refused.
  const refusedAs = (by: string) => ({
    result: {
      content: [
        {
          type: 'text' as const,
          text: `This request was ignored: ${by} already asked to park the session.`,
        },
      ],
      is_error: true,
      detail: { code: 'already_suspended' },
    },
  });

  test('is suspended by the first request: of a person, or of an earlier call', () => {
    given(calling('read'), suspended('suspend-1', { signal: 'go' }))
      .when(returned('a', 'ok', { park: { for_ms: HOUR } }))
      .thenIncludes('call_ended a error', 'suspended suspend-1 or go')
      .thenEvent('call_ended', refusedAs('another request'))
      .thenNever('suspend_requested a');
    given(running(), asked(call('a', 'read'), call('b', 'read')), returned('a', 'ok', { park: { signal: 'go' } }))
      .when(returned('b', 'ok', { park: { for_ms: HOUR } }))
      .thenIncludes('call_ended b error', 'suspended a or go')
      .thenEvent('call_ended', refusedAs('call a'))
      .thenNever('suspend_requested b');
  });

  test('is suspended by the first request, also while hooks check the result of its call', () => {
    given(running({ hooks: [hook('PostToolUse')] }), asked(call('a', 'read'), call('b', 'read')))
      .when(returned('a', 'ok', { park: { signal: 'go' } }), returned('b', 'ok', { park: { for_ms: HOUR } }))
      .when(hooksSaid(undefined), hooksSaid(undefined))
      .thenIncludes('call_ended a ok', 'call_ended b error', 'suspended a or go')
      .thenEvent('call_ended', refusedAs('call a'));
  });

  test('is not suspended by a call that failed or was cancelled', () => {
    given(calling('read'))
      .when(returned('a', 'error', { park: {} }))
      .thenNever('suspend_requested')
      .thenState('assistant_streaming.streaming');
    given(calling('read'), cancelled())
      .when(returned('a', 'ok', { park: {} }))
      .thenNever('suspend_requested');
  });

  test('with a time in the past has an error as the result of its call', () => {
    given(calling('read'), later(2 * HOUR))
      .when(returned('a', 'ok', { park: { until: '1970-01-01T01:00:00Z' } }))
      .thenIncludes('call_ended a error', 'turn_start 2')
      .thenEvent('call_ended', {
        result: expect.objectContaining({ detail: { code: 'invalid_field' } }),
      })
      .thenNever('suspend_requested');
  });

  test('is suspended after hooks have checked the result', () => {
    given(calling('read', { hooks: [hook('PostToolUse')] }), returned('a', 'ok', { park: {} }))
      .when(hooksSaid(undefined))
      .thenIncludes('call_ended a ok', 'suspend_requested a', 'suspended a');
  });

  test.each([
    ['a hook that fails closed', new Failing()],
    ['a hook that makes an error of its result', { is_error: true }],
  ])('is not suspended after %s: the model read an error', (_name, said) => {
    given(calling('read', { hooks: [hook('PostToolUse')] }), returned('a', 'ok', { park: {} }))
      .when(hooksSaid(said))
      .thenIncludes('call_ended a error', 'turn_start 2')
      .thenNever('suspend_requested', 'suspended');
  });

  test('is not suspended by a call that was cancelled while hooks checked its result', () => {
    given(calling('read', { hooks: [hook('PostToolUse')] }), returned('a', 'ok', { park: {} }))
      .when(callCancelled('a'), hooksCancelled)
      .thenIncludes('call_ended a cancelled', 'turn_start 2')
      .thenNever('suspend_requested', 'suspended');
  });

  test('rejects a suspension by a person meanwhile, and can be resumed by a person', () => {
    given(parks())
      .when(suspended())
      .thenJournal('command_rejected already_suspended suspend-1', 'control_outcome suspend already_suspended')
      .when(resumed())
      .thenIncludes('resumed command resume-1', 'turn_start 2');
  });
});

describe('hooks around a suspension', () => {
  const around = { hooks: [hook('pre_suspend'), hook('post_resume')] };

  test('are called before its start, and after its end', () => {
    given(running(around), suspended('suspend-1', { for_ms: HOUR, reason: 'tide' }))
      .when(answered())
      .thenIncludes('turn_end 1', 'hook_call pre_suspend pre_suspend')
      .thenEvent('hook_call', { payload: expect.objectContaining({ for_ms: HOUR, reason: 'tide' }) })
      .thenState('suspended.pre_suspend')
      .when(hooksSaid(undefined))
      .thenIncludes('consult_ended pre_suspend', `suspended suspend-1 until ${HOUR}`)
      .when(later(HOUR), timerFires)
      .thenIncludes(
        'resumed timeout',
        'message_injected suspend-1 direct at post_resume',
        'hook_call post_resume post_resume',
      )
      .thenState('suspended.post_resume')
      .when(hooksSaid(undefined))
      .thenIncludes('consult_ended post_resume', 'turn_start 2');
  });

  test.each([
    ['a block', { block: true, reason: 'not now' }],
    ['false', false],
    ['a failure that fails closed', new Failing()],
  ])('refuse it by %s: the session continues, and the requester is notified', (_name, said) => {
    given(calling('read', around), suspended(), returned('a'))
      .when(hooksSaid(said))
      .thenIncludes('hook_vetoed pre_suspend pre_suspend block', 'turn_start 2')
      .thenEvent('control_outcome', { status: 'blocked', command_id: 'suspend-1' })
      .thenNever('suspended');
  });

  test('that refuse a session that parks itself tell the model', () => {
    const outcome = given(calling('read', around), returned('a', 'ok', { park: {} }))
      .when(hooksSaid({ block: true, reason: 'not now' }))
      .thenIncludes('message_injected a direct at direct', 'turn_start 2');
    expect(told(outcome)).toEqual(['reminder: Hook pre_suspend denied the suspension of the session: not now.']);
  });

  test('that are called at its end do not prevent the next one', () => {
    given(running(around), suspended(), answered(), hooksSaid(undefined), resumed())
      .when(suspended('suspend-2', { signal: 'go' }))
      .thenIncludes('suspend_requested suspend-2 or go', 'control_outcome suspend suspending')
      .when(hooksSaid(undefined))
      .thenIncludes('consult_ended post_resume', 'hook_call pre_suspend pre_suspend')
      .when(hooksSaid(undefined))
      .thenIncludes('suspended suspend-2 or go')
      .thenState('suspended.parked')
      .when(signalled('go'))
      .thenIncludes('resumed signal signal-go');
  });

  test('that are being called delay a second request, and an interrupt is delivered after their answer', () => {
    given(running(around), suspended(), answered())
      .when(suspended('suspend-2'))
      .thenRejected('already_suspended')
      .when(steered('m', INTERRUPT))
      .thenJournal('steering_received m interrupt_immediate')
      .when(hooksSaid(undefined))
      .thenIncludes('suspended suspend-1', 'resumed interrupt m', 'hook_call post_resume post_resume');
  });

  test('of a suspension withdrawn meanwhile continue the run', () => {
    given(calling('read', around), suspended(), returned('a'), resumed())
      .when(hooksSaid({ block: true }))
      .thenIncludes('consult_ended pre_suspend', 'turn_start 2')
      .thenNever('suspended', 'hook_vetoed');
  });

  test('are aborted by a cancel', () => {
    given(running(around), suspended(), answered())
      .when(cancelled(), hooksSaid(undefined), toolsClosed)
      .thenIncludes('agent_end cancelled')
      .thenNever('suspended');
  });
});

describe('a daemon with a wake interval', () => {
  const idle: Move = idled({ wakeIntervalMs: HOUR });

  test('has a timer while it idles, and receives the reason when it wakes', () => {
    const outcome = given(idle)
      .when()
      .thenState('daemon_idle.waiting')
      .thenEffects(`timer wake_interval at ${HOUR}`)
      .when(later(HOUR), timerFires)
      .thenIncludes(
        'timer_fired wake_interval',
        'message_injected 3-0 direct at daemon_idle_post',
        'loop_checkpoint daemon_idle_post',
        'turn_start 2',
      );
    expect(told(outcome)[0]).toMatch(
      /^reminder: No input arrived for 1 h, which is the wake interval of this session\./,
    );
  });

  test('starts a new interval at each idling', () => {
    given(idle, later(HOUR), timerFires, later(1_000))
      .when(answered())
      .thenState('daemon_idle.waiting')
      .thenEffects(`timer wake_interval at ${2 * HOUR + 1_000}`);
  });

  test('is woken by an earlier job, and the timer is ignored', () => {
    given(idle, followedUp('job'))
      .when({ type: 'timer', effect_id: '3-0', due_at_ms: HOUR })
      .thenNothing('no pending timer 3-0')
      .thenState('assistant_streaming.streaming');
  });

  test('that is suspended while it idles does not wake by its interval, but idles again when it is resumed', () => {
    given(idle, suspended())
      .when()
      .thenEffects()
      .when(later(5 * HOUR), resumed())
      .thenState('daemon_idle.waiting')
      .thenEffects(`timer wake_interval at ${6 * HOUR}`);
  });

  test('counts turns from each idling', () => {
    given(idled({ wakeIntervalMs: HOUR, maxTurns: 1 }), timerFires, answered())
      .when(timerFires, answered())
      .thenIncludes('turn_start 3')
      .thenState('daemon_idle.waiting');
  });

  test('can be cancelled while it idles', () => {
    given(idle).when(cancelled()).thenEffects('close_tools').when(toolsClosed).thenIncludes('agent_end cancelled');
  });

  test('that is suspended until a time takes a turn at that time, although it has no job', () => {
    given(idle, suspended('suspend-1', { for_ms: 2 * HOUR }))
      .when()
      .thenEffects(`timer suspension at ${2 * HOUR}`)
      .when(later(2 * HOUR), timerFires)
      .thenIncludes('resumed timeout', 'turn_start 2');
  });
});

describe('the hook session_idle', () => {
  const around = { daemon: true, hooks: [hook('session_idle')] };

  test('is called at each start of idling', () => {
    given(running(around))
      .when(answered())
      .thenIncludes('turn_end 1', 'hook_call session_idle session_idle')
      .thenState('daemon_idle.session_idle')
      .when(hooksSaid(undefined))
      .thenIncludes('consult_ended session_idle', 'loop_checkpoint daemon_idle_pre')
      .thenState('daemon_idle.waiting')
      .when(followedUp('job'), answered())
      .thenCount('hook_call session_idle', 2);
  });

  test('lets an interrupt be delivered at daemon_idle_pre and handled without a wait', () => {
    given(running(around), answered(), steered('m', INTERRUPT))
      .when(hooksSaid(undefined))
      .thenIncludes(
        'loop_checkpoint daemon_idle_pre delivers m',
        'message_injected m steer at daemon_idle_pre',
        'turn_start 2',
      )
      .thenNever('loop_checkpoint daemon_idle_post');
  });

  test.each([
    ['a steer', steered('m')],
    ['a job', followedUp('m')],
  ])('lets %s be handled without a wait', (_name, word) => {
    given(running(around), answered(), word)
      .when(hooksSaid(undefined))
      .thenIncludes('loop_checkpoint daemon_idle_pre', 'turn_start 2')
      .thenNever('loop_checkpoint daemon_idle_post');
  });

  test('lets a suspension start before the idling', () => {
    given(running(around), answered(), suspended())
      .when(hooksSaid(undefined))
      .thenIncludes('consult_ended session_idle', 'suspended suspend-1')
      .thenNever('loop_checkpoint daemon_idle_pre')
      .when(resumed())
      .thenCount('hook_call session_idle', 2);
  });
});

test('a suspension requested before the start of the run keeps its conditions', () => {
  given(started(), suspended('suspend-1', { signal: 'go' }), provisioned())
    .when(answered())
    .thenIncludes('suspended suspend-1 or go');
});

describe('a requested suspension expires if the run ends first, and its sender is notified:', () => {
  const lapsed = 'control_outcome suspend lapsed because the run ended before the suspension took effect';
  const inTheLastTurn: Move = [running({ maxTurns: 1 }), asked(call('a', 'read')), suspended()];

  test('at the maximum of turns', () => {
    given(inTheLastTurn).when(returned('a')).thenIncludes('turn_end 1', lapsed).thenNever('suspended');
    given(inTheLastTurn)
      .when(returned('a'), toolsClosed)
      .thenEvent('control_outcome', {
        control: 'suspend',
        command_id: 'suspend-1',
        status: 'lapsed',
        target: 's1',
        reason: 'the run ended before the suspension took effect',
      })
      .thenCount(lapsed, 1);
  });

  test('by a cancel', () => {
    given(running(), suspended()).when(cancelled()).thenJournal('control_outcome cancel cancelled', lapsed);
  });

  test('by a cancel during its hooks: their answer has no effect', () => {
    given(running({ hooks: [hook('pre_suspend')] }), suspended(), answered(), cancelled())
      .when(hooksSaid({ block: true, reason: 'no' }))
      .thenNever('control_outcome suspend blocked')
      .thenCount(lapsed, 1);
  });

  test('by a failure', () => {
    given(running(), suspended()).when(modelFailed()).thenIncludes('run_failed model model_unavailable', lapsed);
  });

  test('by a budget', () => {
    given(running({ budgets: { tokens: 100 } }), suspended())
      .when(using(60, 60, asked(call('a', 'read'))))
      .thenIncludes('budget_threshold tokens 100%', lapsed)
      .thenNever('suspended');
  });

  test('before its start', () => {
    given(started(), suspended()).when(cancelled()).thenIncludes('control_outcome cancel cancelled', lapsed);
  });

  test('not if it started, was withdrawn, or was requested by the session itself', () => {
    given(running(), suspended(), answered()).when(cancelled(), toolsClosed).thenNever(lapsed);
    given(running(), suspended(), resumed()).when(cancelled(), modelStopped()).thenNever(lapsed);
    given(running({ maxTurns: 1 }), asked(call('a', 'read')))
      .when(returned('a', 'ok', { park: {} }), toolsClosed)
      .thenNever(lapsed);
  });

  test('and can be neither resumed nor requested again', () => {
    given(inTheLastTurn, returned('a')).when(resumed()).thenIncludes('command_rejected not_suspended resume-1');
    given(inTheLastTurn, returned('a'))
      .when(suspended('suspend-2'))
      .thenIncludes('command_rejected not_running suspend-2');
  });
});

test.each([
  [0, '0 ms'],
  [450, '450 ms'],
  [999, '999 ms'],
  [1_000, '1 s'],
  [1_787, '1.8 s'],
  [9_949, '9.9 s'],
  [9_950, '10 s'],
  [59_499, '59 s'],
  [59_500, '1 min'],
  [61_000, '1 min 1 s'],
  [3_600_000, '1 h'],
  [2_000_000, '33 min 20 s'],
  [3_599_500, '1 h'],
  [3_601_000, '1 h'],
  [2 * 24 * HOUR - 1, '2 d'],
  [30 * 24 * HOUR, '30 d'],
  [26 * HOUR, '1 d 2 h'],
])('%d ms read as %s', (ms, text) => {
  expect(durationText(ms)).toBe(text);
});
