/** Forks in the machine: what their first record says, and how they go on where their copied part ends. */
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
  hook,
  later,
  modelStopped,
  notProvisioned,
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
  test('names its origin before anything else, and goes on as its origin did', () => {
    given()
      .when(forked())
      .thenJournal('session_copied fork s0 3', 'prompt_received run 1')
      .thenState('provisioning.resolving');
  });

  test('remembers the command that asked for it, beside its origin’s', () => {
    given(forked('s'))
      .when(started({}, 'fork-s'))
      .thenNothing('repeated command')
      .when(started({}, 's'))
      .thenNothing('repeated command');
  });

  test('is refused where the session is there, and where nobody has looked for the origin', () => {
    given(running()).when(forked('again')).thenJournal('command_rejected session_busy again');
    given(...ended)
      .when(forked('again'))
      .thenJournal('command_rejected session_exists again');
    const unseen = { ...started({}, 'f'), body: { fork: { session: 's0', n: 1 } } };
    given().when(unseen).thenJournal('command_rejected fork_origin_not_found f');
  });
});

describe('where the copied part ends', () => {
  test('a call that was under way is in doubt, also one that somebody had taken up for the origin', () => {
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

  test('a call that only the changed record begins is not', () => {
    const { session } = given(running(), asked(call('a', 'read'), call('b', 'read'))).when(
      takenOver({ unsent: ['b'] }),
    );
    expect(effectsOf(session.state).map(({ epoch }) => epoch)).toEqual([1, 2]);
  });

  test('a model call begins its restarts anew', () => {
    const { session } = given(running(), owned(2), owned(3)).when(takenOver());
    expect(session.state.context.model?.restarts).toBe(0);
  });

  test('the time since the last copied record is nobody’s', () => {
    const limited = running({ budgets: { wall_time_ms: 1_000 } });
    given(limited, later(400)).when(later(60_000), owned(2)).thenIncludes('budget_threshold wall_time_ms 100%');
    const { session } = given(limited, later(400), steered('s'), later(60_000)).when(takenOver());
    expect(session.lines().filter((line) => line.startsWith('budget_threshold'))).toEqual([]);
    expect(session.state.context.clock_watch?.due_at_ms).toBe(60_400 - 400 + 500);
  });

  test('a prompt for a session that has ended begins its next run, one for a running session does not', () => {
    const prompt = { prompt: { command_id: 'fork-1', text: 'and now' } };
    given(...ended)
      .when(takenOver(prompt))
      .thenJournal('owned 2 after copy', 'prompt_received run 2');
    given(running()).when(takenOver(prompt)).thenJournal('owned 2 after copy');
  });
});

describe('another persona or model', () => {
  test('is resolved before anything else of the run goes on', () => {
    given(running(), asked(call('a', 'read')))
      .when(takenOver(OTHER))
      .thenJournal('owned 2 after copy', 'settings_changed model reprovisions')
      .thenEffects('provision')
      .when(provisioned({ maxTurns: 7 }))
      .thenJournal('persona_changed', 'reprovisioned')
      .thenEffects('call_tool a');
  });

  test('leaves the run the hooks that it has begun with: the next table that comes is news', () => {
    const [then, now] = [[hook('PreToolUse', 'then')], [hook('PreToolUse', 'now')]];
    given(running({ hooks: then }), takenOver(OTHER))
      .when(provisioned({ hooks: now, maxTurns: 7 }))
      .thenIncludes('reprovisioned')
      .thenCount('hooks_changed', 1)
      .when(asked(call('a', 'read')))
      .thenIncludes('hook_call then PreToolUse a');
  });

  test('leaves a run that has not begun to its own provisioning, and an ended session to the next', () => {
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

  test('that cannot be had ends the run', () => {
    given(running(), takenOver(OTHER))
      .when(notProvisioned())
      .thenIncludes('run_failed provisioning mcp_server_failed')
      .thenState('tearing_down.unwinding');
  });

  test('is waited for no longer once the run is cancelled', () => {
    given(running(), takenOver(OTHER), cancelled())
      .when(modelStopped(), notProvisioned('cancelled'))
      .thenIncludes('reprovisioned', 'turn_end 1');
  });

  test('takes the address with the model and the mode with the persona', () => {
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

describe('a copy that cannot be completed', () => {
  test('ends the run that was copied half, and only says so of a session that had ended', () => {
    given(running())
      .when(takenOver(GONE))
      .thenIncludes('owned 2 after copy', 'copy_failed 2 fork_origin_gone', 'run_failed session fork_origin_gone');
    given(...ended)
      .when(takenOver(GONE))
      .thenJournal('owned 2 after copy', 'copy_failed 4 fork_origin_gone')
      .thenState('stopped');
  });
});
