/**
 * The guard: `user_prompt_submit` hooks check every steer and follow-up before a model reads it.
 */
import { describe, expect, test } from 'vitest';
import { given } from './given.ts';
import {
  answered,
  approved,
  asked,
  call,
  callCancelled,
  cancelled,
  command,
  denied,
  Failing,
  followedUp,
  hook,
  hooksCancelled,
  hooksChanged,
  hooksSaid,
  type Move,
  modelStopped,
  prompted,
  provisioned,
  reminded,
  replaced,
  resumed,
  returned,
  running,
  type Surroundings,
  started,
  steered,
  suspended,
  toolsClosed,
} from './moves.ts';
import { INTERRUPT } from './openings.ts';

const GUARD = hook('user_prompt_submit', 'door');
const ALLOW = hooksSaid(undefined);
const BLOCK = hooksSaid({ block: true, reason: 'no orders from ashore' });

/** A run with a guard: the prompt was accepted. */
const guarded = (around: Surroundings = {}): Move => [
  running({ ...around, hooks: [GUARD, ...(around.hooks ?? [])] }),
  ALLOW,
];

describe('an accepted message is checked immediately', () => {
  test.each([
    ['a steer', steered('m'), 'steering_received m finish_step', 'steer', 'do m'],
    ['a follow-up', followedUp('m'), 'followup_received m', 'followup', 'then m'],
    ['a note for the record', steered('m', 'audit_only'), 'steering_received m audit_only', 'steer', 'do m'],
  ])('%s, with its text and origin', (_what, move, line, origin, prompt) => {
    given(guarded())
      .when(move)
      .thenJournal(line, 'hook_call door user_prompt_submit m')
      .thenEffects('call_model', 'consult user_prompt_submit')
      .thenEvent('hook_call', {
        command_id: 'm',
        payload: { event: 'user_prompt_submit', session: { id: 's1' }, persona: 'coder', turn: 1, prompt, origin },
      });
  });

  test('and again if its text was replaced meanwhile', () => {
    given(guarded(), steered('m'), replaced('m', 'rather this'))
      .when(ALLOW)
      .thenIncludes('guard_ended m none', 'hook_call door user_prompt_submit m')
      .thenEvent('hook_call', { payload: expect.objectContaining({ prompt: 'rather this', origin: 'steer' }) })
      .when(BLOCK)
      .thenIncludes('guard_ended m blocked');
  });

  test('a reminder is not a prompt: no hook is called', () => {
    given(guarded()).when(reminded('m')).thenJournal('reminder_injected m finish_step');
  });

  test('without a registered hook no check is made', () => {
    given(running({ hooks: [hook('post_turn')] }))
      .when(steered('m'))
      .thenJournal('steering_received m finish_step');
  });

  test('by every registration in order, until one blocks', () => {
    const second = hook('user_prompt_submit', 'second', { priority: 1 });
    given(running({ hooks: [GUARD, second] }), hooksSaid(undefined, undefined), steered('m'))
      .when(hooksSaid({ block: true }))
      .thenJournal(
        'hook_returned door user_prompt_submit m block',
        'hook_returned second user_prompt_submit m not_run',
        'hook_vetoed door user_prompt_submit m block',
        'injection_blocked m: blocked by door',
        'guard_ended m blocked',
      );
  });

  test('one at a time, interrupts first, then in order', () => {
    given(guarded(), steered('a'), followedUp('b'), steered('c'), steered('d', INTERRUPT))
      .when(ALLOW)
      .thenIncludes('guard_ended a allowed', 'hook_call door user_prompt_submit d')
      .when(ALLOW)
      .thenIncludes('guard_ended d allowed', 'hook_call door user_prompt_submit c')
      .when(ALLOW)
      .thenIncludes('guard_ended c allowed', 'hook_call door user_prompt_submit b');
  });
});

describe('a verdict', () => {
  test('that accepts it makes it deliverable', () => {
    given(guarded(), steered('m'), ALLOW)
      .when(answered())
      .thenIncludes('loop_checkpoint iteration_end delivers m', 'message_injected m steer at iteration_end');
  });

  test('that blocks it removes it permanently', () => {
    given(guarded(), steered('m'))
      .when(BLOCK)
      .thenJournal(
        'hook_returned door user_prompt_submit m block',
        'hook_vetoed door user_prompt_submit m block',
        'injection_blocked m: door: no orders from ashore',
        'guard_ended m blocked',
      )
      .when(answered(), toolsClosed)
      .thenIncludes('agent_end end_turn')
      .thenNever('message_injected');
  });

  test('a hook that fails closed blocks', () => {
    given(guarded(), steered('m'))
      .when(hooksSaid(new Failing()))
      .thenIncludes('injection_blocked m: door: hook_timeout', 'guard_ended m blocked');
  });

  test('a hook that fails open accepts', () => {
    const open = hook('user_prompt_submit', 'door', { on_error: 'fail_open' });
    given(running({ hooks: [open] }), ALLOW, steered('m'))
      .when(hooksSaid(new Failing()))
      .thenJournal('hook_returned door user_prompt_submit m hook_timeout', 'guard_ended m allowed');
  });

  test('a hook without an answer blocks', () => {
    given(guarded(), steered('m'))
      .when(hooksCancelled)
      .thenIncludes('injection_blocked m: door: the hook did not answer', 'guard_ended m blocked');
  });

  test('counts once: the same outcome again changes nothing', () => {
    given(guarded(), steered('m')).when(ALLOW).again().thenNothing();
  });
});

describe('a seam with a message to deliver waits for the verdict:', () => {
  test('iteration_end', () => {
    given(guarded(), steered('m'))
      .when(answered())
      .thenJournal('message_complete "fine"')
      .thenState('steering_check.iteration_end')
      .when(ALLOW)
      .thenIncludes('guard_ended m allowed', 'loop_checkpoint iteration_end delivers m', 'turn_end 1', 'turn_start 2');
  });

  test('post_tool_dispatch', () => {
    given(guarded(), asked(call('a', 'read')), steered('m'))
      .when(returned('a'))
      .thenJournal('call_ended a ok')
      .when(ALLOW)
      .thenIncludes('guard_ended m allowed', 'loop_checkpoint post_tool_dispatch delivers m');
  });

  test('pre_tool_dispatch, for an interrupt: no call starts meanwhile', () => {
    given(guarded(), steered('m', INTERRUPT))
      .when(asked(call('a', 'read')))
      .thenJournal('message_complete asks a')
      .thenState('function_execute.pre_tool_dispatch')
      .when(ALLOW)
      .thenIncludes('guard_ended m allowed', 'loop_checkpoint pre_tool_dispatch delivers m skips a')
      .thenNever('call_started');
  });

  test('pre_tool_dispatch does not wait for messages that it would not deliver', () => {
    given(guarded(), steered('m'))
      .when(asked(call('a', 'read')))
      .thenIncludes('loop_checkpoint pre_tool_dispatch', 'call_started a');
  });

  test('loop_exit, for a note that is only recorded', () => {
    given(guarded(), answeredWhileAsked('m'))
      .when(ALLOW)
      .thenIncludes('guard_ended m allowed', 'loop_checkpoint loop_exit delivers m');
  });

  test('a blocked message leaves the seam with nothing to deliver: the run ends, without another turn', () => {
    given(guarded(), steered('m'), answered())
      .when(BLOCK, toolsClosed)
      .thenIncludes('injection_blocked m: door: no orders from ashore', 'loop_checkpoint iteration_end', 'turn_end 1')
      .thenIncludes('agent_end end_turn')
      .thenNever('turn_start 2', 'message_injected');
  });

  test('the gate, without the gate hooks that were removed meanwhile: permission_asked hooks are still called', () => {
    const asks = hook('permission_asked', 'perm');
    given(guarded({ hooks: [hook('gate_tool_calls'), asks] }), steered('m'), asked(call('a', 'ask')))
      .when(hooksChanged([GUARD, asks]), ALLOW)
      .thenIncludes('guard_ended m allowed', 'hook_call perm permission_asked a');
  });

  test('two messages stay in order', () => {
    given(guarded(), steered('a'), steered('b'), ALLOW)
      .when(answered())
      .thenJournal('message_complete "fine"')
      .when(ALLOW)
      .thenIncludes('loop_checkpoint iteration_end delivers a b');
  });

  test('one at a time, only the first is waited for', () => {
    given(guarded({ steering: 'one_at_a_time' }), steered('a'), steered('b'), ALLOW)
      .when(answered())
      .thenIncludes('loop_checkpoint iteration_end delivers a', 'turn_start 2');
  });

  test('at the maximum of turns the seam delivers nothing and does not wait', () => {
    given(guarded({ maxTurns: 1 }), steered('m'))
      .when(answered())
      .thenIncludes('loop_checkpoint iteration_end', 'turn_end 1')
      .when(ALLOW, toolsClosed)
      .thenIncludes('guard_ended m allowed', 'agent_end max_turns pending 1');
  });
});

function answeredWhileAsked(id: string): Move {
  return [steered(id, 'audit_only'), answered()];
}

describe('an interrupt stops an approved call, even if its verdict takes time:', () => {
  const parked = [guarded(), asked(call('a', 'ask'), call('b', 'ask'))];

  test('while calls are parked, they stay so until it is accepted', () => {
    given(...parked)
      .when(steered('m', INTERRUPT))
      .thenJournal('steering_received m interrupt_immediate', 'hook_call door user_prompt_submit m')
      .when(ALLOW)
      .thenIncludes(
        'guard_ended m allowed',
        'loop_checkpoint pre_tool_dispatch delivers m skips a b',
        'approval_decided a superseded',
        'call_ended a skipped',
        'approval_decided b superseded',
        'call_ended b skipped',
        'message_injected m steer at pre_tool_dispatch',
      );
  });

  test('an approval during the check starts nothing', () => {
    given(...parked, steered('m', INTERRUPT))
      .when(approved('a'))
      .thenJournal('approval_decided a allow', 'control_outcome approve allowed a')
      .when(ALLOW)
      .thenIncludes('loop_checkpoint pre_tool_dispatch delivers m skips a b', 'call_ended a skipped')
      .thenNever('call_started');
  });

  test('nor does the last decision', () => {
    given(...parked, steered('m', INTERRUPT), approved('a'))
      .when(denied('b'))
      .thenJournal('approval_decided b deny', 'control_outcome approve denied b')
      .when(ALLOW)
      .thenIncludes('call_ended a skipped', 'call_ended b skipped')
      .thenNever('call_started');
  });

  test('after a block, calls approved meanwhile run', () => {
    given(...parked, steered('m', INTERRUPT), approved('a'))
      .when(BLOCK)
      .thenIncludes('guard_ended m blocked', 'loop_checkpoint pre_tool_dispatch', 'call_started a')
      .thenState('function_awaiting_approval.parked');
  });

  test('after a block, with all calls decided meanwhile, the batch continues', () => {
    given(...parked, steered('m', INTERRUPT), approved('a'), denied('b'))
      .when(BLOCK)
      .thenIncludes('loop_checkpoint pre_tool_dispatch', 'call_started a')
      .thenState('function_execute.running')
      .when(returned('a'))
      .thenIncludes('loop_checkpoint post_tool_dispatch');
  });

  test('after a block, with all calls ended meanwhile, the turn continues', () => {
    given(...parked, steered('m', INTERRUPT), callCancelled('a'), callCancelled('b'))
      .when(BLOCK)
      .thenIncludes('loop_checkpoint pre_tool_dispatch', 'loop_checkpoint post_tool_dispatch', 'turn_end 1');
  });

  test('during the hooks of calls: the guard runs before the next hook, then no call starts', () => {
    const around = { hooks: [hook('PreToolUse', 'pre')] };
    given(guarded(around), asked(call('a', 'read'), call('b', 'read')))
      .when(steered('m', INTERRUPT))
      .thenJournal('steering_received m interrupt_immediate')
      .when(ALLOW)
      .thenIncludes('consult_ended PreToolUse a', 'hook_call door user_prompt_submit m')
      .when(ALLOW)
      .thenIncludes('guard_ended m allowed', 'hook_call pre PreToolUse b')
      .when(ALLOW)
      .thenIncludes('loop_checkpoint pre_tool_dispatch delivers m skips a b')
      .thenNever('call_started');
  });

  test('during the gate', () => {
    given(guarded({ hooks: [hook('gate_tool_calls', 'gate')] }), asked(call('a', 'read')), steered('m', INTERRUPT))
      .when(hooksSaid([{ allow: true }]))
      .thenIncludes('consult_ended gate_tool_calls', 'hook_call door user_prompt_submit m')
      .thenState('function_execute.dispatching')
      .when(ALLOW)
      .thenIncludes('loop_checkpoint pre_tool_dispatch delivers m skips a')
      .thenNever('call_started');
  });

  test('a call cancelled before its own hooks delays nothing', () => {
    given(guarded({ hooks: [hook('PreToolUse', 'pre')] }), steered('m'), asked(call('a', 'read')))
      .when(callCancelled('a', { inject_reminder: false }), ALLOW)
      .thenIncludes(
        'guard_ended m allowed',
        'loop_checkpoint pre_tool_dispatch',
        'loop_checkpoint post_tool_dispatch delivers m',
      );
  });

  test('a preempting one ends running work as soon as it is accepted, and not before', () => {
    given(guarded())
      .when(command('steer', 'm', { body: 'stop', mode: INTERRUPT, preempt: true }))
      .thenEffects('call_model', 'consult user_prompt_submit')
      .when(ALLOW)
      .thenEffects('call_model aborted')
      .when(modelStopped('half'))
      .thenIncludes('message_complete partial "half"', 'loop_checkpoint iteration_end delivers m', 'turn_start 2')
      .thenEffects('call_model');
  });

  test('a preempting one that is blocked ends nothing', () => {
    given(guarded(), command('steer', 'm', { body: 'stop', mode: INTERRUPT, preempt: true }))
      .when(BLOCK)
      .thenEffects('call_model');
  });

  test('a preempting one that is accepted before the model is called ends nothing', () => {
    given(guarded(), command('steer', 'm', { body: 'stop', mode: INTERRUPT, preempt: true }), cancelled())
      .when(modelStopped(), hooksCancelled, toolsClosed, prompted(), provisioned({ hooks: [GUARD] }), ALLOW)
      .thenIncludes('turn_start 1')
      .when(ALLOW)
      .thenIncludes('loop_checkpoint iteration_start delivers m')
      .thenEffects('call_model');
  });
});

describe('follow-ups', () => {
  test('the run waits for the verdict before it ends, and continues in place', () => {
    given(guarded(), followedUp('f'))
      .when(answered())
      .thenIncludes('turn_end 1')
      .thenState('steering_check.follow_up')
      .when(ALLOW)
      .thenIncludes('guard_ended f allowed', 'message_injected f followup at steering_check', 'turn_start 2');
  });

  test('a blocked one does not: the run ends', () => {
    given(guarded(), followedUp('f'), answered())
      .when(BLOCK, toolsClosed)
      .thenIncludes('guard_ended f blocked', 'agent_end end_turn')
      .thenNever('turn_start 2');
  });

  test('after a blocked one the next is delivered', () => {
    given(guarded(), followedUp('f'), followedUp('g'), answered())
      .when(BLOCK)
      .thenIncludes('guard_ended f blocked', 'hook_call door user_prompt_submit g')
      .when(ALLOW)
      .thenIncludes('message_injected g followup at steering_check', 'turn_start 2');
  });

  test('steering that arrives during the check goes first', () => {
    given(guarded(), followedUp('f'), answered(), steered('m'))
      .when(ALLOW)
      .thenIncludes('guard_ended f allowed', 'hook_call door user_prompt_submit m')
      .thenState('steering_check.follow_up')
      .when(ALLOW)
      .thenIncludes('turn_start 2', 'loop_checkpoint iteration_start delivers m')
      .thenNever('message_injected f');
  });

  test('if all are delivered together, all verdicts are waited for', () => {
    given(guarded({ followups: 'all' }), followedUp('f'), followedUp('g'), answered(), ALLOW)
      .when(ALLOW)
      .thenIncludes('message_injected f followup at steering_check', 'message_injected g followup at steering_check');
  });

  test('a suspension requested meanwhile comes first', () => {
    given(guarded(), followedUp('f'), answered(), suspended())
      .when(ALLOW)
      .thenIncludes('guard_ended f allowed', 'suspended suspend-1')
      .thenNever('message_injected f');
  });
});

describe('a waiting session', () => {
  test('as a daemon is woken by the verdict, not by the message', () => {
    given(guarded({ daemon: true }), answered())
      .when(steered('m'))
      .thenState('daemon_idle.waiting')
      .when(ALLOW)
      .thenIncludes(
        'guard_ended m allowed',
        'loop_checkpoint daemon_idle_post',
        'turn_start 2',
        'message_injected m steer at iteration_start',
      );
  });

  test('as a daemon is suspended at once if the request came while it waited for the verdict', () => {
    const hooks = [hook('session_idle')];
    given(guarded({ daemon: true, hooks }), answered(), steered('m', INTERRUPT), hooksSaid(undefined))
      .when(suspended())
      .thenState('daemon_idle.daemon_idle_pre')
      .thenJournal('suspend_requested suspend-1', 'control_outcome suspend suspending')
      .when(BLOCK)
      .thenIncludes('guard_ended m blocked', 'loop_checkpoint daemon_idle_pre', 'suspended suspend-1')
      .thenState('suspended.parked');
  });

  test('as a daemon is not woken by a blocked message', () => {
    given(guarded({ daemon: true }), answered(), followedUp('f'))
      .when(BLOCK)
      .thenState('daemon_idle.waiting')
      .thenNever('turn_start 2');
  });

  test('suspended is woken by an accepted interrupt', () => {
    given(guarded(), suspended(), answered())
      .when(steered('m', INTERRUPT))
      .thenState('suspended.parked')
      .when(ALLOW)
      .thenIncludes('guard_ended m allowed', 'resumed interrupt m', 'message_injected m steer at iteration_start');
  });

  test('suspended and resumed during a check, it waits for the verdict before it continues', () => {
    given(guarded(), suspended(), answered(), steered('m'))
      .when(resumed())
      .thenState('steering_check.resuming')
      .when(BLOCK, toolsClosed)
      .thenIncludes('guard_ended m blocked', 'agent_end end_turn')
      .thenNever('turn_start 2');
  });
});

describe('without a running run', () => {
  const over: Move = [guarded(), answered(), toolsClosed];

  test('no hook is called; the next run checks the message', () => {
    given(over)
      .when(steered('m'))
      .thenJournal('steering_received m finish_step')
      .thenEffects()
      .when(prompted(), provisioned({ hooks: [GUARD] }), ALLOW)
      .thenIncludes('consult_ended user_prompt_submit', 'hook_call door user_prompt_submit m', 'turn_start 1')
      .thenState('assistant_streaming.iteration_start')
      .when(ALLOW)
      .thenIncludes('loop_checkpoint iteration_start delivers m');
  });

  test('hooks that the next run no longer has are not waited for', () => {
    given(over, steered('m'))
      .when(prompted(), provisioned())
      .thenIncludes('loop_checkpoint iteration_start delivers m');
  });

  test('a cancel aborts the check; the next run repeats it', () => {
    given(guarded(), steered('m'))
      .when(cancelled())
      .thenEffects('call_model aborted', 'consult user_prompt_submit aborted')
      .when(hooksCancelled, modelStopped(), toolsClosed)
      .thenIncludes('guard_ended m none', 'agent_end cancelled pending 1')
      .when(prompted(), provisioned({ hooks: [GUARD] }), ALLOW)
      .thenIncludes('hook_call door user_prompt_submit m');
  });

  test('a verdict that arrived before the cancel reached the hook counts', () => {
    given(guarded(), steered('m'), cancelled())
      .when(BLOCK, modelStopped(), toolsClosed)
      .thenIncludes('injection_blocked m: door: no orders from ashore', 'agent_end cancelled');
  });

  test('a run in teardown does not check new messages', () => {
    given(guarded(), cancelled())
      .when(steered('m'), modelStopped(), toolsClosed)
      .thenIncludes('agent_end cancelled pending 1')
      .thenNever('hook_call door user_prompt_submit m');
  });

  test('an unchecked note of a cancelled run waits for the next run', () => {
    given(guarded(), steered('m', 'audit_only'), cancelled())
      .when(hooksCancelled, modelStopped(), toolsClosed)
      .thenIncludes('loop_checkpoint loop_exit', 'agent_end cancelled pending 1')
      .thenNever('message_injected');
  });

  test('before the first run nothing is checked before its provision', () => {
    given(started(), steered('m'))
      .when(provisioned({ hooks: [hook('session_start'), GUARD] }))
      .thenIncludes('hook_call session_start session_start')
      .when(ALLOW, ALLOW)
      .thenIncludes('consult_ended user_prompt_submit', 'hook_call door user_prompt_submit m');
  });
});

test('the prompt itself is checked as a prompt, as before', () => {
  given()
    .when(running({ hooks: [GUARD] }))
    .thenEvent('hook_call', { payload: expect.objectContaining({ prompt: 'hello', origin: 'prompt' }) as never });
});
