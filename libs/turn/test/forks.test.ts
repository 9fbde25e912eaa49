/**
 * Forks in the machine: their first record, and how they continue after the copied part.
 */
import { describe, expect, test } from 'vitest';
import { effectsOf } from '../src/mod.ts';
import { given } from './given.ts';
import {
  accepted,
  answered,
  asked,
  call,
  cancelled,
  forked,
  handoff,
  hook,
  hooksSaid,
  later,
  modelStopped,
  notProvisioned,
  notTakenOver,
  owned,
  prompted,
  provisioned,
  running,
  started,
  steered,
  takenOver,
  toolsClosed,
} from './moves.ts';

const ended = [running(), answered(), toolsClosed];
const OTHER = { settings: { model: 'scripted/other.yaml' } };
const GONE = { error: { code: 'fork_origin_gone', message: 'gone' } };

describe('the first record of a fork', () => {
  test('names its origin first, and continues like its origin', () => {
    given()
      .when(forked())
      .thenJournal('session_copied fork s0 3', 'prompt_received run 1')
      .thenState('provisioning.resolving');
  });

  test('remembers the command that requested it, next to its origin’s', () => {
    given(forked('s'))
      .when(started({}, 'fork-s'))
      .thenNothing('repeated command')
      .when(started({}, 's'))
      .thenNothing('repeated command');
  });

  test('is rejected if the session exists, or if the origin was not looked up', () => {
    given(running()).when(forked('again')).thenJournal('command_rejected session_busy again');
    given(...ended)
      .when(forked('again'))
      .thenJournal('command_rejected session_exists again');
    const unseen = { ...started({}, 'f'), body: { fork: { session: 's0', n: 1 } } };
    given().when(unseen).thenJournal('command_rejected fork_origin_not_found f');
  });
});

describe('at the end of the copied part', () => {
  test('a running call is in doubt, also one that a worker accepted for the origin', () => {
    const way = [running(), asked(call('a', 'long'), call('b', 'read')), accepted('a')];
    given(...way)
      .when(owned(2))
      .thenEffects('call_tool b');
    const { session } = given(...way)
      .when(takenOver())
      .thenJournal('owned 2 after copy')
      .thenEffects('call_tool a', 'call_tool b');
    expect(effectsOf(session.state).map(({ epoch }) => epoch)).toEqual([1, 1]);
  });

  test('a call that only the changed record starts is not', () => {
    const { session } = given(running(), asked(call('a', 'read'), call('b', 'read'))).when(
      takenOver({ unsent: ['b'] }),
    );
    expect(effectsOf(session.state).map(({ epoch }) => epoch)).toEqual([1, 2]);
  });

  test('jobs of hooks stay with the origin', () => {
    const around = { hooks: [hook('session_start', 'starter')] };
    const way = [started(), provisioned(around), hooksSaid({ job: { status: 'queued', job_id: 'j1' } })];
    expect(given(...way).when(owned(2)).session.state.context.jobs).toHaveLength(1);
    expect(given(...way).when(takenOver()).session.state.context.jobs).toEqual([]);
  });

  test('the restarts of a model call are counted from zero', () => {
    const { session } = given(running(), owned(2), owned(3)).when(takenOver());
    expect(session.state.context.model?.restarts).toBe(0);
  });

  test('the time since the last copied record does not count', () => {
    const limited = running({ budgets: { wall_time_ms: 1_000 } });
    given(limited, later(400)).when(later(60_000), owned(2)).thenIncludes('budget_threshold wall_time_ms 100%');
    const { session } = given(limited, later(400), steered('s'), later(60_000)).when(takenOver());
    expect(session.lines().filter((line) => line.startsWith('budget_threshold'))).toEqual([]);
    expect(session.state.context.clock_watch?.due_at_ms).toBe(60_400 - 400 + 500);
  });

  test('a prompt starts the next run of an ended session, and is rejected by a running one', () => {
    const prompt = { prompt: { command_id: 'fork-1', text: 'and now' } };
    given(...ended)
      .when(takenOver(prompt))
      .thenJournal('owned 2 after copy', 'prompt_received run 2');
    given(running()).when(takenOver(prompt)).thenJournal('owned 2 after copy');
  });
});

describe('another persona or model', () => {
  test('is resolved before the run continues', () => {
    given(running(), asked(call('a', 'read')))
      .when(takenOver(OTHER))
      .thenJournal('owned 2 after copy', 'settings_changed model reprovisions')
      .thenEffects('provision')
      .when(provisioned({ maxTurns: 7 }))
      .thenJournal('persona_changed', 'reprovisioned')
      .thenEffects('call_tool a');
  });

  test('keeps the hooks of the run: the next table is a change', () => {
    const [then, now] = [[hook('PreToolUse', 'then')], [hook('PreToolUse', 'now')]];
    given(running({ hooks: then }), takenOver(OTHER))
      .when(provisioned({ hooks: now, maxTurns: 7 }))
      .thenIncludes('reprovisioned')
      .thenCount('hooks_changed', 1)
      .when(asked(call('a', 'read')))
      .thenIncludes('hook_call then PreToolUse a');
  });

  test('is resolved by the provision of a run that has not started, or of the next run', () => {
    given(started())
      .when(takenOver(OTHER))
      .thenJournal('owned 2 after copy', 'settings_changed model')
      .thenEffects('provision');
    const { session } = given(...ended)
      .when(takenOver(OTHER))
      .thenEffects();
    expect(session.state.context).toMatchObject({ repins: 'model', settings: { model: 'scripted/other.yaml' } });
    session.make(prompted(), provisioned());
    expect(session.state.context.repins).toBe(null);
  });

  test('applies its time budget, also while a call waits', () => {
    given(running(), asked(call('a', 'ask')), later(400), takenOver(OTHER))
      .when(provisioned({ budgets: { wall_time_ms: 1_000 } }))
      .thenEffects('timer time_budget at 900');
    const limited = running({ budgets: { wall_time_ms: 1_000 } });
    given(limited, later(600), asked(call('a', 'ask')), takenOver(OTHER))
      .when(provisioned({ budgets: { wall_time_ms: 100_000 } }))
      .thenEffects('timer time_budget at 50000')
      .when(later(60_000), steered('m'))
      .thenIncludes('budget_threshold wall_time_ms 50%');
  });

  test('that cannot be resolved ends the run', () => {
    given(running(), takenOver(OTHER))
      .when(notProvisioned())
      .thenIncludes('run_failed provisioning mcp_server_failed')
      .thenState('tearing_down.unwinding');
  });

  test('is no longer waited for once the run is cancelled', () => {
    given(running(), takenOver(OTHER), cancelled())
      .when(modelStopped(), notProvisioned('cancelled'))
      .thenIncludes('reprovisioned', 'turn_end 1');
  });

  test('that is being resolved does not hold up the end of a hand-off', () => {
    given(running({ handoffs: ['tester'] }), asked(handoff('h')), takenOver(OTHER), cancelled())
      .when(notTakenOver('h', 'cancelled'))
      .thenIncludes('call_ended h cancelled')
      .when(notProvisioned('cancelled'), toolsClosed)
      .thenIncludes('reprovisioned', 'agent_end cancelled');
  });

  test('replaces the address with the model and the mode with the persona', () => {
    const settings = {
      model: 'a/b',
      base_url: 'http://localhost:1',
      mode: 'terse',
      persona: { name: 'p', modes: { terse: { prompt: 't' } } },
    };
    const after = (changes: Parameters<typeof takenOver>[0]) =>
      given(started(settings)).when(takenOver(changes)).session.state.context.settings;
    const { persona } = settings;
    expect(after(OTHER)).toEqual({
      model: 'scripted/other.yaml',
      mode: 'terse',
      persona: expect.objectContaining(persona),
    });
    const poet = { persona: 'poet' };
    expect(after({ settings: poet })).toEqual({ ...poet, model: 'a/b', base_url: 'http://localhost:1' });
  });
});

describe('an incomplete copy', () => {
  test('ends a half copied run, and is only recorded for an ended session', () => {
    given(running())
      .when(takenOver(GONE))
      .thenIncludes('owned 2 after copy', 'copy_failed 2 fork_origin_gone', 'run_failed session fork_origin_gone');
    given(...ended)
      .when(takenOver(GONE))
      .thenJournal('owned 2 after copy', 'copy_failed 4 fork_origin_gone')
      .thenState('stopped');
  });
});
