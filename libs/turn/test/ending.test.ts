/**
 * The end of a run: edited files that hooks have not seen, then the points at the end in their order, then `agent_end`,
 * once.
 */
import { BOUNDS } from '@coxswain/protocol';
import { describe, expect, test } from 'vitest';
import { given } from './given.ts';
import {
  answered,
  asked,
  call,
  cancelled,
  Failing,
  followedUp,
  hook,
  hooksSaid,
  type Move,
  modelFailed,
  modelStopped,
  notProvisioned,
  prompted,
  provisioned,
  returned,
  running,
  started,
  steered,
  toolsClosed,
} from './moves.ts';

const POINTS = ['session_error', 'session_end', 'pre_finish', 'on_unsettled_detected', 'post_finish'] as const;
/** Registered in reverse: the machine defines the order. */
const hooks = POINTS.map((point) => hook(point)).reverse();
const silent = hooksSaid(undefined);

const pointsOf = (lines: readonly string[]) =>
  lines.flatMap((line) => (line.startsWith('hook_call') ? line.split(' ')[2] : []));

describe('at the end hooks are called in this order, each at most once,', () => {
  test('after a failure with unsettled messages: all of them, then agent_end', () => {
    const { session } = given(running({ hooks }), followedUp('f'), modelFailed('half')).when(
      toolsClosed,
      ...POINTS.map(() => silent),
    );
    expect(pointsOf(session.lines())).toEqual(POINTS);
    expect(session.lines().at(-1)).toBe('agent_end error pending 1');
  });

  test('without a failure and queued messages: not session_error and on_unsettled_detected', () => {
    const { session } = given(running({ hooks }), answered()).when(toolsClosed, silent, silent, silent);
    expect(pointsOf(session.lines())).toEqual(['session_end', 'pre_finish', 'post_finish']);
    expect(session.lines().at(-1)).toBe('agent_end end_turn');
  });

  test('after a cancel, which is not an error', () => {
    const { session } = given(running({ hooks }), cancelled(), modelStopped()).when(
      toolsClosed,
      silent,
      silent,
      silent,
    );
    expect(pointsOf(session.lines())).toEqual(['session_end', 'pre_finish', 'post_finish']);
  });

  test('each after the answer of the previous one, and after the tools are closed', () => {
    given(running({ hooks }), answered())
      .when(toolsClosed)
      .thenJournal('tools_closed', 'hook_call session_end session_end')
      .thenState('tearing_down.session_end')
      .when(silent)
      .thenIncludes('consult_ended session_end', 'hook_call pre_finish pre_finish')
      .thenNever('hook_call post_finish', 'agent_end');
  });

  test('not before the first provision of a later run', () => {
    given(started()).when(notProvisioned()).thenNever('hook_call').thenState('failed');
  });
});

describe('their payloads contain', () => {
  test('session_error: the failure and its record', () => {
    given(running({ hooks: [hook('session_error')] }), modelFailed('half'))
      .when(toolsClosed)
      .thenEvent('hook_call', {
        payload: {
          event: 'session_error',
          session: { id: 's1' },
          persona: 'coder',
          turn: 1,
          stop_reason: 'error',
          error: { code: 'model_unavailable', message: 'gone' },
          failed_at: 3,
        },
      });
  });

  test('pre_finish and post_finish: how the run ends', () => {
    given(running({ hooks: [hook('pre_finish'), hook('post_finish')], maxTurns: 1 }), asked(call('a', 'read')))
      .when(returned('a'), toolsClosed, silent)
      .thenEvent('hook_call', { point: 'pre_finish', payload: expect.objectContaining({ stop_reason: 'max_turns' }) })
      .thenEvent('hook_call', { point: 'post_finish', payload: expect.objectContaining({ stop_reason: 'max_turns' }) });
  });

  test('on_unsettled_detected: the undelivered injections', () => {
    given(running({ hooks: [hook('on_unsettled_detected')] }), answered(), steered('s'), followedUp('f'))
      .when(toolsClosed)
      .thenEvent('hook_call', {
        payload: expect.objectContaining({
          unsettled: {
            undelivered: 2,
            injections: [
              { command_id: 's', kind: 'steer' },
              { command_id: 'f', kind: 'followup' },
            ],
          },
        }),
      });
  });

  test('of many queued messages the first ones, and the number of the others', () => {
    const many: Move = Array.from({ length: 70 }, (_, i) => followedUp(`f${i}`));
    const { session } = given(
      running({ hooks: [hook('on_unsettled_detected')] }),
      many,
      cancelled(),
      modelStopped(),
    ).when(toolsClosed);
    const asking = session.steps.at(-1)?.events.find((event) => event.type === 'hook_call');
    expect(asking?.type === 'hook_call' && asking.payload?.unsettled).toMatchObject({
      undelivered: 70,
      injections: { length: 64 },
    });
  });
});

describe('they cannot delay the end', () => {
  test.each([
    ['block', { block: true }],
    ['say nonsense', { nonsense: 1 }],
    ['do not answer', new Failing('hook_timeout')],
  ])('if they %s', (_name, said) => {
    given(running({ hooks: [hook('pre_finish')] }), answered(), toolsClosed)
      .when(hooksSaid(said))
      .thenIncludes('consult_ended pre_finish', 'agent_end end_turn')
      .thenNever('run_failed');
  });

  test('messages that are unsettled at the call stay so, and later ones wait', () => {
    given(running({ hooks: [hook('on_unsettled_detected')] }), answered(), steered('s'), toolsClosed, steered('t'))
      .when(silent)
      .thenJournal(
        'hook_returned on_unsettled_detected on_unsettled_detected no_objection',
        'consult_ended on_unsettled_detected',
        'agent_end end_turn pending 2',
      )
      .when(prompted(), provisioned({ hooks: [hook('on_unsettled_detected')] }))
      .thenIncludes('loop_checkpoint iteration_start delivers s t');
  });
});

describe('files edited by calls', () => {
  const edits = (id: string, ...paths: readonly string[]) => returned(id, 'ok', { edited: [...paths] });
  const hooked = (more: object = {}) => running({ hooks: [hook('file_edited')], ...more });
  const pathsOf = (journal: readonly { readonly events: readonly { readonly type: string }[] }[]) =>
    journal.flatMap(({ events }) =>
      events.flatMap((event) => {
        const asking = event as { type: string; point?: string; payload?: { path?: unknown } };
        return asking.type === 'hook_call' && asking.point === 'file_edited' ? [asking.payload?.path] : [];
      }),
    );

  test('are passed to file_edited hooks at the end of the turn, sorted, without duplicates, one after another', () => {
    const { session } = given(
      hooked(),
      asked(call('a', 'read'), call('b', 'read')),
      edits('b', 'src/z.ts', 'src/b.ts'),
    ).when(edits('a', 'src/b.ts', 'src/a.ts'), silent, silent, silent);
    expect(pathsOf(session.steps)).toEqual(['src/a.ts', 'src/b.ts', 'src/z.ts']);
    expect(session.lines()).toContain('files_edited b src/z.ts src/b.ts');
    expect(session.lines().slice(-5)).toEqual([
      'turn_end 1',
      'turn_start 2',
      'loop_checkpoint iteration_start',
      'loop_checkpoint pre_compact',
      'loop_checkpoint post_compact',
    ]);
  });

  test('after post_turn hooks, and before the end of the turn', () => {
    given(running({ hooks: [hook('file_edited'), hook('post_turn')] }), asked(call('a', 'read')))
      .when(edits('a', 'x'))
      .thenIncludes('loop_checkpoint post_tool_dispatch', 'hook_call post_turn post_turn')
      .thenNever('hook_call file_edited')
      .when(silent)
      .thenIncludes('consult_ended post_turn', 'hook_call file_edited file_edited')
      .when(silent)
      .thenIncludes('consult_ended file_edited', 'turn_end 1', 'turn_start 2');
  });

  test('are reported for failed or interrupted calls as well', () => {
    given(hooked(), asked(call('a', 'read'), call('b', 'read')))
      .when(returned('a', 'error', { edited: ['x'] }), returned('b', 'interrupted', { edited: ['y'] }))
      .thenIncludes('files_edited a x', 'call_ended a error', 'files_edited b y', 'call_ended b interrupted')
      .thenState('steering_check.file_edited');
  });

  test('of a turn that ends the run are passed during the teardown', () => {
    given(hooked(), asked(call('a', 'done')))
      .when(edits('a', 'x'))
      .thenIncludes('turn_end 1', 'hook_call file_edited file_edited')
      .thenState('tearing_down.file_edited')
      .when(silent)
      .thenIncludes('consult_ended file_edited', 'loop_checkpoint loop_exit');
  });

  test('of a cancelled run are passed too', () => {
    given(hooked(), asked(call('a', 'read'), call('b', 'read')), edits('a', 'x', 'y'), cancelled())
      .when(returned('b', 'cancelled'))
      .thenEffects('consult file_edited')
      .when(silent, silent)
      .thenCount('hook_call file_edited file_edited', 2)
      .thenIncludes('loop_checkpoint loop_exit');
  });

  test('are only recorded if no such hook is registered', () => {
    given(running(), asked(call('a', 'read')))
      .when(edits('a', 'x'))
      .thenIncludes('files_edited a x', 'turn_start 2')
      .thenNever('hook_call');
  });

  test('of a late outcome are ignored', () => {
    given(hooked(), asked(call('a', 'read')))
      .when(edits('a', 'x'))
      .again()
      .thenNothing('no open effect 3-0');
  });

  test('beyond the bound of a turn are not passed', () => {
    const paths = (from: number) => Array.from({ length: 64 }, (_, i) => `f${String(from + i).padStart(4, '0')}`);
    const ids = ['a', 'b', 'c', 'd', 'e'];
    const { session } = given(hooked(), asked(...ids.map((id) => call(id, 'read')))).when(
      ...ids.map((id, i) => edits(id, ...paths(i * 64))),
    );
    expect(session.state.context.edited).toHaveLength(BOUNDS.editedPathsPerTurnMax);
  });
});
