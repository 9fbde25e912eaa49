import { homedir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { nodeProblem } from '../bin/supported-node.mjs';
import { stateDirOf } from '../src/folders/mod.ts';
import { matchPrefix } from '../src/instance/mod.ts';
import { Flags } from '../src/line/mod.ts';
import { chooseCall, exitCodeOf } from '../src/run/mod.ts';

const flags = (given: Record<string, string> = {}) =>
  new Flags(Object.entries(given).map(([name, value]) => ({ name, value })));

describe('a prefix of a session id', () => {
  const ids = ['k3f9aa', 'k3f9ab', 'k3', 'zz'];
  test('that is a whole id takes precedence over longer ids', () => expect(matchPrefix('k3', ids)).toBe('k3'));
  test('with one match is enough', () => expect(matchPrefix('z', ids)).toBe('zz'));
  test('with several matches is rejected with their ids', () => {
    expect(() => matchPrefix('k3f', ids)).toThrow('"k3f" matches k3f9aa, k3f9ab; give more of the id');
  });
  test('that is empty is a usage error, also with only one session', () => {
    expect(() => matchPrefix('', ['k3'])).toThrow(expect.objectContaining({ exitCode: 2, code: 'usage' }));
  });
  test('without a match is session_not_found', () => {
    expect(() => matchPrefix('q', ids)).toThrow('session_not_found');
  });
});

describe('the call of an approval', () => {
  const one = [{ call_id: 'c1_1', tool: 'edit_file' }];
  const two = [...one, { call_id: 'c1_2', tool: 'run_command' }];
  test('needs no id if it is the only one', () => expect(chooseCall(undefined, one)).toBe('c1_1'));
  test('is named by a prefix of its id', () => expect(chooseCall('c1_2', two)).toBe('c1_2'));
  test('with an unknown id is left to the session to reject', () => {
    expect(chooseCall('gone', two)).toBe('gone');
  });
  test('with an empty id is a usage error, also with only one call', () => {
    expect(() => chooseCall('', one)).toThrow(expect.objectContaining({ exitCode: 2, code: 'usage' }));
  });
  test('is rejected if there is none, if there are several, or if the prefix is ambiguous', () => {
    expect(() => chooseCall(undefined, [])).toThrow('not_pending: no call of this session or below it waits');
    expect(() => chooseCall(undefined, [], 'not_found')).toThrow('not_found: no call of this session is open');
    expect(() => chooseCall(undefined, two)).toThrow('c1_1 (edit_file), c1_2 (run_command)');
    expect(() => chooseCall('c1', two)).toThrow('give more of the id');
  });
});

describe('the state directory', () => {
  test('comes from the flag, then from the variable, then from the user’s folder', () => {
    expect(stateDirOf(flags({ 'state-dir': 'rel' }), { INIT_CWD: '/typed', COX_STATE_DIR: '/var/x' })).toBe(
      '/typed/rel',
    );
    expect(stateDirOf(flags(), { COX_STATE_DIR: '/var/x', XDG_STATE_HOME: '/xdg' })).toBe('/var/x');
    expect(stateDirOf(flags(), { XDG_STATE_HOME: '/xdg' })).toBe('/xdg/coxswain');
    expect(stateDirOf(flags(), { XDG_STATE_HOME: 'relative' })).toBe(join(homedir(), '.local/state/coxswain'));
  });
});

test('every stop reason has its exit code', () => {
  expect(
    (
      [
        'end_turn',
        'terminated',
        'stop_condition',
        'error',
        'cancelled',
        'max_turns',
        'budget_exceeded',
        'user_prompt_submit_blocked',
      ] as const
    ).map(exitCodeOf),
  ).toEqual([0, 0, 0, 1, 3, 4, 4, 5]);
});

test.each([
  ['20.19.0', null],
  ['22.1.0', null],
  ['20.18.3', 'cox needs Node 20.19 or newer, and this is Node 20.18.3'],
  ['18.20.0', 'cox needs Node 20.19 or newer, and this is Node 18.20.0'],
])('cox on Node %s reports: %s', (version, problem) => {
  expect(nodeProblem(version)).toBe(problem);
});
