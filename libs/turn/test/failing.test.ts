/**
 * Failures: a failed run closes everything it opened, and the session can continue.
 */
import { BOUNDS } from '@coxswain/protocol';
import { describe, expect, test } from 'vitest';
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

describe('a failed provision', () => {
  test('ends the run as failed, started and ended once, with the code', () => {
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

  test('counts as failed if it was aborted without a cancel', () => {
    given(started()).when(notProvisioned('cancelled')).thenIncludes('run_failed provisioning provision_failed');
  });

  test('in a later run closes the tools of the previous one', () => {
    given(ended(), prompted()).when(notProvisioned()).thenEffects('close_tools').when(toolsClosed).thenState('failed');
  });

  test('can be repeated', () => {
    given(started(), notProvisioned())
      .when(prompted(), provisioned())
      .thenIncludes('agent_start run 2', 'turn_start 1');
  });
});

describe('a model that fails', () => {
  test('keeps the partial text, marked, without its unfinished calls', () => {
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

  test('before any text leaves no message', () => {
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

  test('and stops without a reason is a broken stream, and the run ends', () => {
    given(running()).when(modelStopped('half')).thenIncludes('run_failed model model_stream_broken', 'turn_end 1');
  });

  test('with an answer that is both complete and partial counts as partial', () => {
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

  test('is late if it answers after its abort', () => {
    given(running()).when(modelFailed()).again().thenNothing('no open effect 2-0');
  });
});

describe('a broken invariant', () => {
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

  test.each(Object.entries(ways))('%s starts the teardown, closes everything open and ends as failed', (_name, way) => {
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

  test('of a cancelled run hides neither the cancel nor the failure', () => {
    given(running(), cancelled(), sessionFailed)
      .when(modelStopped(), toolsClosed)
      .thenIncludes('agent_end cancelled')
      .thenEvent('agent_end', { error: { code: 'session_failed', message: 'an invariant broke' } });
  });

  test('keeps its own reason if a person cancels the ending run', () => {
    const { session } = given(running(), asked(call('a', 'read')), sessionFailed).when(
      cancelled('cancel-1', 'the wrong file'),
      returned('a', 'cancelled'),
      toolsClosed,
    );
    const events = session.steps.flatMap((step) => step.events);
    const [ended] = events.filter((event) => event.type === 'call_ended');
    expect(ended?.result.content).toEqual([
      { type: 'text', text: expect.stringContaining('Cancelled by the host, with the run: an invariant broke') },
    ]);
    expect(events.find((event) => event.type === 'agent_end')).not.toHaveProperty('reason');
  });

  test('after a failure does not replace it', () => {
    given(running(), modelFailed(), sessionFailed)
      .when(toolsClosed)
      .thenEvent('agent_end', { error: { code: 'model_unavailable', message: 'gone' } });
  });
});

describe('a host that claims a session', () => {
  test('raises the epoch and calls the model again under the same effect', () => {
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

  test('may do so in any state, also after the end', () => {
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

  // As many claims as a model call may be restarted, and the epoch of the next.
  const allowed = Array.from({ length: BOUNDS.modelRestartsMax }, (_, i) => owned(i + 2));
  const next = BOUNDS.modelRestartsMax + 2;

  test('too often during a model call ends the run as failed', () => {
    given(running(), allowed)
      .when(owned(next))
      .thenIncludes(`owned ${next}`, 'run_failed model model_restarts_exhausted', 'turn_end 1')
      .when(toolsClosed)
      .thenIncludes('agent_end error');
  });

  test('too often while a cancelled answer stops does not make it a failure', () => {
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
