/**
 * Steps of served personas: waiting, continuing, lost and abandoned.
 */
import { BOUNDS, type PersonaStepInput } from '@coxswain/protocol';
import { describe, expect, test } from 'vitest';
import { sessionTimer } from '../src/mod.ts';
import { given } from './given.ts';
import {
  answered,
  askedAt,
  call,
  cancelled,
  compacted,
  hook,
  hooksSaid,
  later,
  type Move,
  modelStopped,
  owned,
  returned,
  running,
  takenOver,
  timerFires,
  toolsClosed,
} from './moves.ts';

type Told = PersonaStepInput extends infer One
  ? One extends PersonaStepInput
    ? Omit<One, 'type' | 'effect_id'>
    : never
  : never;
/** A host reports the progress of the open step. */
const step =
  (told: Told, effectId?: string): Move =>
  (state) =>
    ({
      type: 'persona_step',
      effect_id: effectId ?? state.context.model?.id ?? state.context.compacting?.id ?? '0-0',
      ...told,
    }) as PersonaStepInput;
const about = { persona: 'mate', version: 'v1' };
const unserved = step({ state: 'waits', ...about, why: 'unserved', wait_ms: 60_000 });
const paused = step({ state: 'waits', ...about, why: 'paused', reason: 'the tide' });
const goesOn = step({ state: 'goes_on' });
const lost = step({ state: 'lost', ...about, instance: 'i1', cause: 'gone' });

describe('a step without an instance', () => {
  test('waits, and continues when an instance serves it', () => {
    given(running())
      .when(unserved, goesOn, answered())
      .thenIncludes(
        'waiting_for_persona mate v1 unserved',
        'persona_wait_ended mate unserved',
        'message_complete "fine"',
      );
  });

  test('is reported once', () => {
    given(running(), unserved).when(unserved).thenNothing('the wait is already recorded');
  });

  test('fails the run when its time is over', () => {
    given(running(), unserved)
      .when(timerFires, toolsClosed)
      .thenIncludes('timer_fired waiting_for_persona', 'agent_end error')
      .thenState('failed');
  });

  test('applies the error boundary of a declared step, if one is open', () => {
    const steps = [
      { name: 'plan', prompt: 'Plan.', error_boundary: 'continue' as const },
      { name: 'write', prompt: 'Write.', error_boundary: 'fail' as const },
    ];
    given(running({ steps }), unserved)
      .when(timerFires)
      .thenIncludes(
        'timer_fired waiting_for_persona',
        'step_finished plan failed persona_unavailable: continue',
        'step_started write',
      );
    given(running({ steps: [steps[1] as (typeof steps)[1]] }), unserved)
      .when(timerFires, toolsClosed)
      .thenIncludes('step_finished write failed persona_unavailable: fail', 'agent_end error');
  });

  test('of a compaction ends the run, because the model call after it would wait as well', () => {
    const steps = [{ name: 'plan', prompt: 'Plan.', error_boundary: 'continue' as const }];
    const compacting: Move = [running({ compaction: {}, steps }), askedAt(90, call('a', 'read')), returned('a')];
    given(compacting, unserved)
      .when(timerFires, compacted(), toolsClosed)
      .thenIncludes(
        'timer_fired waiting_for_persona',
        'run_failed model persona_unavailable',
        'step_finished plan unfinished',
        'agent_end error',
      )
      .thenNever('compaction_done');
  });

  test('keeps waiting under the next host, with the same timer', () => {
    given(running(), unserved, owned(2)).when(timerFires, toolsClosed).thenIncludes('agent_end error');
  });

  test.each([
    ['model call', running()],
    ['compaction', [running({ compaction: {} }), askedAt(90, call('a', 'read')), returned('a')]],
  ] as const)('of a %s is no restart for each host during which it waits', (_name, way) => {
    const hosts = Array.from({ length: BOUNDS.modelRestartsMax + 1 }, (_, i) => owned(i + 2));
    const { session } = given(way, paused, ...hosts)
      .when(goesOn)
      .thenNever('run_failed', 'compaction_skipped', 'compaction_done');
    const { model, compacting } = session.state.context;
    expect((model ?? compacting)?.restarts).toBe(0);
  });

  test('waits in a fork only after the fork started it itself, with its own time', () => {
    const { state } = given(running(), unserved, later(50_000)).when(takenOver()).session;
    expect(sessionTimer(state)).toBeNull();
    const fork = given(running(), unserved, later(50_000), takenOver()).when(unserved).session;
    expect((sessionTimer(fork.state)?.dueAtMs ?? 0) - fork.state.context.at_ms).toBe(60_000);
  });

  test('may be cancelled', () => {
    given(running(), unserved)
      .when(cancelled(), modelStopped(), toolsClosed)
      .thenIncludes('agent_end cancelled')
      .thenState('stopped');
  });
});

describe('a pause', () => {
  test('replaces a wait for an instance, and the other way round', () => {
    given(running(), unserved)
      .when(paused, unserved)
      .thenIncludes(
        'persona_wait_ended mate unserved',
        'waiting_for_persona mate v1 paused',
        'persona_wait_ended mate paused',
        'waiting_for_persona mate v1 unserved',
      );
  });

  test('has no time limit', () => {
    given(running()).when(paused).thenEffects('call_model');
  });

  test('beyond the full queue of a slow hook is not announced, and neither is its end', () => {
    const hooks = [hook('OnPersonaPaused', 'paused'), hook('OnPersonaResumed', 'resumed')];
    const pauses = Array.from({ length: 40 }, () => [paused, goesOn]);
    const slow = given(running({ hooks }), pauses);
    expect(slow.state.context.announcements.map(({ point }) => point)).toEqual(
      Array.from({ length: 16 }, () => ['OnPersonaPaused', 'OnPersonaResumed']).flat(),
    );
    // Three seams are announced first, so the last place is that of a pause. Its end follows it.
    given(running({ hooks: [hook('loop_checkpoint', 'seam'), ...hooks] }), pauses)
      .when(...Array.from({ length: 33 }, () => hooksSaid(undefined)))
      .thenCount('hook_call paused', 15)
      .thenCount('hook_call resumed', 15);
  });
});

describe('a step with a lost instance', () => {
  test('is reported with the instance and the number of losses', () => {
    given(running())
      .when(lost, lost, answered())
      .thenIncludes('persona_step_lost i1 gone 1', 'persona_step_lost i1 gone 2');
  });

  test('stays the same step', () => {
    given(running(), lost)
      .when(step({ state: 'lost', ...about, instance: 'i1', cause: 'gone' }, '1-9'))
      .thenNothing();
  });
});

test('a step that did not wait cannot continue', () => {
  given(running()).when(goesOn).thenNothing('no wait is recorded');
});
