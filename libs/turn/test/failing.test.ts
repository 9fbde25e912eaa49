/** Failure from everywhere: a run that fails still closes what it opened, and the session can go on. */
import { BOUNDS } from '@coxswain/protocol';
import { describe, test } from 'vitest';
import { given } from './given.ts';
import {
  answered,
  asked,
  call,
  cancelled,
  hook,
  type Move,
  modelFailed,
  modelStopped,
  notProvisioned,
  owned,
  prompted,
  provisioned,
  returned,
  running,
  sessionFailed,
  started,
  toolsClosed,
} from './moves.ts';
import { asleep, calling, ended, idled } from './openings.ts';
import { settlement } from './world.ts';

describe('provisioning that fails', () => {
  test('ends the run as failed, begun and ended once, with the code', () => {
    given(started())
      .when(notProvisioned())
      .thenJournal(
        'run_failed provisioning mcp_server_failed',
        'agent_start run 1',
        'loop_checkpoint loop_exit',
        'agent_end error',
      )
      .thenState('failed')
      .thenEvent('agent_end', { error: { code: 'mcp_server_failed', message: 'no answer' }, failed_at: 2, turns: 0 });
  });

  test('also where it was broken off without anyone having asked', () => {
    given(started()).when(notProvisioned('cancelled')).thenIncludes('run_failed provisioning provision_failed');
  });

  test('in a later run closes the tools of the one before', () => {
    given(ended(), prompted()).when(notProvisioned()).thenEffects('close_tools').when(toolsClosed).thenState('failed');
  });

  test('can be tried again', () => {
    given(started(), notProvisioned())
      .when(prompted(), provisioned())
      .thenIncludes('agent_start run 2', 'turn_start 1');
  });
});

describe('a model that fails', () => {
  test('keeps the partial text, marked, without the calls that were under way', () => {
    given(running())
      .when(modelFailed('half', call('a', 'read')), toolsClosed)
      .thenJournal(
        'message_complete partial "half"',
        'run_failed model model_unavailable',
        'turn_end 1',
        'loop_checkpoint loop_exit',
        'tools_closed',
        'agent_end error',
      )
      .thenState('failed');
  });

  test('before it said anything leaves no message', () => {
    given(running())
      .when(modelFailed(), toolsClosed)
      .thenJournal(
        'run_failed model model_unavailable',
        'turn_end 1',
        'loop_checkpoint loop_exit',
        'tools_closed',
        'agent_end error',
      );
  });

  test('breaks off without a reason: that is a broken stream, and nothing hangs', () => {
    given(running()).when(modelStopped('half')).thenIncludes('run_failed model model_stream_broken', 'turn_end 1');
  });

  test('calls its answer complete and partial at once: the worse of the two is believed', () => {
    const contradicting: Move = (state) => ({
      type: 'model_outcome',
      effect_id: state.context.model?.id ?? '',
      status: 'complete',
      message: { role: 'assistant', content: [call('a', 'read')], partial: true },
      finish_reason: 'stop',
      usage: { input_tokens: 1, output_tokens: 1 },
      body_streamed: false,
      attempts: 1,
      duration_ms: 1,
    });
    given(running())
      .when(contradicting)
      .thenIncludes('run_failed model model_stream_broken', 'turn_end 1')
      .thenNever('call_started');
  });

  test('again after it was given up is late', () => {
    given(running()).when(modelFailed()).again().thenNothing('no open effect 2-0');
  });
});

describe('an exception of ours', () => {
  const ways: Readonly<Record<string, Move>> = {
    'while surroundings are resolved': started(),
    'while the model answers': running(),
    'while hooks are asked': calling('read', { hooks: [hook('PreToolUse')] }),
    'while calls run': [running(), asked(call('a', 'read'), call('b', 'ask'))],
    'while calls are parked': calling('ask'),
    'after a turn': [running({ hooks: [hook('post_turn')] }), answered()],
    'while a daemon idles': idled(),
    'while it is suspended': asleep(),
    'while it is torn down': [running(), answered()],
    'while it is torn down and hooks are asked': ended({ hooks: [hook('session_end')] }),
  };

  test.each(Object.entries(ways))('%s leads down, closes what is open and ends as failed', (_name, way) => {
    const outcome = given(way).when(sessionFailed);
    outcome.thenIncludes('run_failed session session_failed');
    for (let input = settlement(outcome.session.state); input; input = settlement(outcome.session.state)) {
      outcome.session.make(input);
    }
    outcome
      .thenState('failed')
      .thenCount('agent_start', 1)
      .thenCount('agent_end', 1)
      .thenEvent('agent_end', {
        stop_reason: 'error',
        error: { code: 'session_failed', message: 'an invariant broke' },
      });
  });

  test.each([
    ['before anything has happened', []],
    ['after the run has ended', ended()],
  ] as const)('%s is ignored', (_name, way) => {
    given(way).when(sessionFailed).thenNothing('the run has ended');
  });

  test('of a cancelled run does not hide that it was cancelled, nor what went wrong', () => {
    given(running(), cancelled(), sessionFailed)
      .when(modelStopped(), toolsClosed)
      .thenIncludes('agent_end cancelled')
      .thenEvent('agent_end', { error: { code: 'session_failed', message: 'an invariant broke' } });
  });

  test('the first failure stands', () => {
    given(running(), modelFailed(), sessionFailed)
      .when(toolsClosed)
      .thenEvent('agent_end', { error: { code: 'model_unavailable', message: 'gone' } });
  });
});

describe('a host that takes a session over', () => {
  test('raises the epoch, and the model is asked again under the same effect', () => {
    given(running())
      .when(owned(2))
      .thenJournal('owned 2')
      .thenState('assistant_streaming.streaming')
      .thenEffects('call_model')
      .when(answered())
      .thenIncludes('message_complete "fine"');
  });

  test('with an epoch that is not newer is ignored', () => {
    given(running(), owned(3)).when(owned(3)).thenNothing('epoch 3 is not after 3').when(owned(2)).thenNothing();
  });

  test('may do so in any state, also an ended one', () => {
    given(ended()).when(owned(2)).thenJournal('owned 2').thenState('stopped');
    given(calling('ask')).when(owned(2)).thenState('function_awaiting_approval.parked');
  });

  test('leaves running calls in doubt: their epoch is older than the session’s', () => {
    const { session } = given(calling('read')).when(owned(2));
    const [row] = session.state.context.calls;
    if (!row || row.epoch === undefined || row.epoch >= session.state.context.epoch) throw new Error('not in doubt');
    given(calling('read'), owned(2))
      .when(returned('a', 'interrupted'))
      .thenIncludes('call_ended a interrupted', 'turn_start 2');
  });

  // As many take-overs as a model call is begun again after, and the epoch of the next.
  const allowed = Array.from({ length: BOUNDS.modelRestartsMax }, (_, i) => owned(i + 2));
  const next = BOUNDS.modelRestartsMax + 2;

  test('once too often while the model is asked ends the run as failed', () => {
    given(running(), allowed)
      .when(owned(next))
      .thenIncludes(`owned ${next}`, 'run_failed model model_restarts_exhausted', 'turn_end 1')
      .when(toolsClosed)
      .thenIncludes('agent_end error');
  });

  test('once too often while a cancelled answer is let go does not make a failure of it', () => {
    given(running(), allowed, cancelled())
      .when(owned(next), modelStopped(), toolsClosed)
      .thenIncludes(`owned ${next}`, 'agent_end cancelled')
      .thenNever('run_failed');
  });

  test('counts restarts per answer, not per run', () => {
    given(running(), allowed, asked(call('a', 'read')), returned('a'))
      .when(owned(next))
      .thenJournal(`owned ${next}`);
  });
});
