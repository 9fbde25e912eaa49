/**
 * Stop conditions: a text in the answer, a called tool, a predicate in code; and reasons to continue nevertheless.
 */
import { describe, test } from 'vitest';
import { given } from './given.ts';
import {
  answered,
  asked,
  call,
  cancelled,
  denied,
  followedUp,
  hook,
  hooksSaid,
  type Move,
  owned,
  predicatesSaid,
  predicatesStopped,
  prompted,
  provisioned,
  returned,
  running,
  started,
  steered,
  suspended,
  toolsClosed,
} from './moves.ts';

/** An answer with a text and a call. */
const saysAndAsks = (text: string, callId: string): Move => {
  const plain = answered(text);
  return (state) => {
    const outcome = (
      plain as (
        of: typeof state,
      ) => Extract<ReturnType<Extract<Move, (...args: never) => unknown>>, { type: 'model_outcome' }>
    )(state);
    return { ...outcome, message: { ...outcome.message, content: [...outcome.message.content, call(callId, 'read')] } };
  };
};

describe('a text', () => {
  const around = { stopWhen: [{ text: 'DONE' }, { text: '/^all \\w+$/i' }] };

  test('ends the run with the answer that contains it', () => {
    given(running(around))
      .when(answered('I am DONE'), toolsClosed)
      .thenJournal(
        'message_complete "I am DONE"',
        'stop_condition_held text DONE',
        'loop_checkpoint iteration_end',
        'turn_end 1',
        'loop_checkpoint loop_exit',
        'tools_closed',
        'agent_end stop_condition',
      )
      .thenState('stopped');
  });

  test('may be a regular expression', () => {
    given(running(around)).when(answered('All right')).thenIncludes('stop_condition_held text /^all \\w+$/i');
  });

  test('is false for an answer without it', () => {
    given(running(around))
      .when(answered('not yet'), toolsClosed)
      .thenIncludes('agent_end end_turn')
      .thenNever('stop_condition_held');
  });

  test('in an answer with calls applies after they have run', () => {
    given(running(around), saysAndAsks('DONE', 'a'))
      .when(returned('a'), toolsClosed)
      .thenIncludes('call_ended a ok', 'loop_checkpoint post_tool_dispatch', 'turn_end 1', 'agent_end stop_condition')
      .thenCount('turn_start', 1);
  });

  test('applies to its own turn only', () => {
    given(running(around), steered('m'), answered('DONE'))
      .when(answered('more'), toolsClosed)
      .thenIncludes('agent_end end_turn');
  });

  test('and not to the next run', () => {
    given(running(around), answered('DONE'), toolsClosed, prompted(), provisioned(around))
      .when(answered('fine'), toolsClosed)
      .thenIncludes('agent_end end_turn');
  });
});

describe('a tool', () => {
  const around = { stopWhen: [{ tool: 're*' }] };

  test('ends the run after its batch', () => {
    given(running(around), asked(call('a', 'read'), call('b', 'done')), returned('a'))
      .when(returned('b'), toolsClosed)
      .thenJournal(
        'call_ended b ok',
        'stop_condition_held tool re*',
        'loop_checkpoint post_tool_dispatch',
        'turn_end 1',
        'loop_checkpoint loop_exit',
        'tools_closed',
        'agent_end stop_condition',
      );
  });

  test('also if its outcome is unknown, and a person denies a re-run', () => {
    given(running({ ...around, onUnknownOutcome: 'ask' }), asked(call('a', 'read')), owned(2))
      .when(returned('a', 'interrupted'), denied('a'), toolsClosed)
      .thenIncludes('call_ended a interrupted', 'stop_condition_held tool re*', 'agent_end stop_condition');
  });

  test('also if it failed: it was called', () => {
    given(running(around), asked(call('a', 'read')))
      .when(returned('a', 'error'), toolsClosed)
      .thenIncludes('agent_end stop_condition');
  });

  test('does not count if it was prevented from running', () => {
    given(running({ stopWhen: [{ tool: 'ask' }] }), asked(call('a', 'ask')))
      .when(denied('a'))
      .thenIncludes('turn_start 2')
      .thenNever('stop_condition_held');
  });

  test('does not count if an interrupt skipped it: its sender is answered', () => {
    given(running(around), steered('m', 'interrupt_immediate'))
      .when(asked(call('a', 'read')))
      .thenIncludes('call_ended a skipped', 'turn_start 2')
      .thenNever('stop_condition_held');
  });

  test('an interrupt that skips the rest of a batch makes the run continue, although one call has run', () => {
    given(running(around), asked(call('a', 'read'), call('b', 'ask')), steered('m', 'interrupt_immediate'))
      .when(returned('a'))
      .thenIncludes('turn_end 1 dispatch_skipped', 'turn_start 2');
  });

  test('that terminates ends the run as terminated: termination has priority', () => {
    given(running({ stopWhen: [{ tool: 'done' }] }), asked(call('a', 'done')))
      .when(returned('a'), toolsClosed)
      .thenIncludes('stop_condition_held tool done', 'agent_end terminated');
  });
});

describe('a predicate', () => {
  const around = { stopWhen: [{ predicate: 'enough' }, { predicate: 'late' }] };

  test('is called after a batch, and ends the run if it is true', () => {
    given(running(around), asked(call('a', 'read')))
      .when(returned('a'))
      .thenIncludes('loop_checkpoint post_tool_dispatch', 'stop_predicates_asked enough late')
      .thenEffects('check_stop')
      .thenState('steering_check.stop_check')
      .when(predicatesSaid(false, true), toolsClosed)
      .thenJournal(
        'stop_predicates_answered enough false late true',
        'stop_condition_held predicate late',
        'turn_end 1',
        'loop_checkpoint loop_exit',
        'tools_closed',
        'agent_end stop_condition',
      );
  });

  test('lets the run continue if all are false', () => {
    given(running(around), asked(call('a', 'read')), returned('a'))
      .when(predicatesSaid(false, false))
      .thenJournal(
        'stop_predicates_answered enough false late false',
        'turn_end 1',
        'turn_start 2',
        'loop_checkpoint iteration_start',
        'loop_checkpoint pre_compact',
        'loop_checkpoint post_compact',
      );
  });

  test('that fails counts as false', () => {
    given(running(around), asked(call('a', 'read')), returned('a'))
      .when(predicatesSaid('it threw', false))
      .thenIncludes('stop_predicates_answered enough failed late false', 'turn_start 2');
  });

  test('is called before the last seam of a plain answer: later messages are delivered there', () => {
    given(running(around), answered())
      .when(steered('m'), predicatesSaid(true))
      .thenIncludes(
        'stop_predicates_answered enough true',
        'stop_condition_held predicate enough',
        'loop_checkpoint iteration_end delivers m',
        'turn_end 1',
        'turn_start 2',
      );
  });

  test('is not called if another condition is true, or if steering makes the run continue', () => {
    given(running({ stopWhen: [{ tool: 'read' }, { predicate: 'enough' }] }), asked(call('a', 'read')))
      .when(returned('a'), toolsClosed)
      .thenIncludes('agent_end stop_condition')
      .thenNever('stop_predicates_asked');
    given(running(around), asked(call('a', 'read')), steered('m'))
      .when(returned('a'))
      .thenIncludes('turn_start 2')
      .thenNever('stop_predicates_asked');
  });

  test('is called once per turn', () => {
    given(running(around), asked(call('a', 'read')), returned('a'), predicatesSaid(false, false))
      .when(asked(call('b', 'read')), returned('b'))
      .thenCount('stop_predicates_asked', 2);
  });

  test('that is being called when the run is cancelled is aborted, and its answer ends nothing', () => {
    given(running(around), asked(call('a', 'read')), returned('a'))
      .when(cancelled())
      .thenEffects('check_stop aborted')
      .when(predicatesSaid(true), toolsClosed)
      .thenIncludes('stop_predicates_answered enough true', 'turn_end 1', 'agent_end cancelled')
      .thenNever('stop_condition_held');
  });

  test('that was aborted without a cancel lets the run continue', () => {
    given(running(around), asked(call('a', 'read')), returned('a'))
      .when(predicatesStopped)
      .thenIncludes('turn_start 2');
  });

  test('is called again by the next owner, and a repeated answer changes nothing', () => {
    given(running(around), asked(call('a', 'read')), returned('a'), owned(2))
      .when(predicatesSaid(false, true))
      .thenIncludes('stop_condition_held predicate late')
      .again()
      .thenNothing();
  });
});

describe('a true condition', () => {
  const around = { stopWhen: [{ tool: 'read' }, { text: 'DONE' }] };

  test('is overridden by steering at post_tool_dispatch, which is answered', () => {
    given(running(around), asked(call('a', 'read')), steered('m'))
      .when(returned('a'))
      .thenIncludes(
        'stop_condition_held tool read',
        'loop_checkpoint post_tool_dispatch delivers m',
        'turn_end 1',
        'turn_start 2',
      )
      .thenNever('agent_end');
  });

  test('is overridden by steering at iteration_end', () => {
    given(running(around), steered('m'))
      .when(answered('DONE'))
      .thenIncludes('stop_condition_held text DONE', 'loop_checkpoint iteration_end delivers m', 'turn_start 2')
      .thenNever('agent_end');
  });

  test('leaves follow-ups to the next run', () => {
    given(running(around), followedUp('f'))
      .when(answered('DONE'), toolsClosed)
      .thenIncludes('agent_end stop_condition pending 1')
      .thenNever('message_injected f')
      .when(prompted(), provisioned(around), answered('fine'))
      .thenIncludes('message_injected f followup at steering_check');
  });

  test('precedes the maximum of turns, suspensions and a daemon’s idling', () => {
    given(running({ ...around, maxTurns: 1 }), asked(call('a', 'read')))
      .when(returned('a'), toolsClosed)
      .thenIncludes('agent_end stop_condition');
    given(running(around), suspended(), asked(call('a', 'read')))
      .when(returned('a'), toolsClosed)
      .thenIncludes('agent_end stop_condition');
    given(running({ ...around, daemon: true }))
      .when(answered('DONE'), toolsClosed)
      .thenIncludes('agent_end stop_condition');
  });

  test('lets post_turn hooks see the turn first', () => {
    given(running({ ...around, hooks: [hook('post_turn')] }))
      .when(answered('DONE'))
      .thenIncludes('stop_condition_held text DONE', 'hook_call post_turn post_turn')
      .when(hooksSaid(undefined), toolsClosed)
      .thenIncludes('loop_checkpoint iteration_end', 'agent_end stop_condition');
  });

  test('does not report an insufficient budget: the run stops by choice', () => {
    given(running({ ...around, budgets: { tokens: 12 } }), asked(call('a', 'read')))
      .when(returned('a'), toolsClosed)
      .thenIncludes('agent_end stop_condition')
      .thenNever('budget_threshold tokens 100%');
  });
});

test('a session without conditions records nothing about them', () => {
  given(started(), provisioned())
    .when(answered('DONE'), toolsClosed)
    .thenNever('stop_condition_held', 'stop_predicates_asked');
});
