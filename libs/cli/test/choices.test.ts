import { mkdtemp, rm } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { nodeProblem } from '../bin/supported-node.mjs';
import { streamCheck } from '../src/instance/checks.ts';
import { findBus } from '../src/instance/find-bus.ts';
import { matchPrefix } from '../src/instance/resolve-session.ts';
import { stateDirOf } from '../src/instance/state-dir.ts';
import { Flags } from '../src/line/flags.ts';
import { chooseCall } from '../src/run/decide.ts';
import { exitCodeOf } from '../src/run/exit-code-of.ts';
import { inject } from '../src/run/inject.ts';

const flags = (given: Record<string, string> = {}) =>
  new Flags(Object.entries(given).map(([name, value]) => ({ name, value })));

describe('a session is named by a unique beginning of its id', () => {
  const ids = ['k3f9aa', 'k3f9ab', 'k3', 'zz'];
  test('the whole id goes before longer ones', () => expect(matchPrefix('k3', ids)).toBe('k3'));
  test('one match is enough', () => expect(matchPrefix('z', ids)).toBe('zz'));
  test('several are told', () => {
    expect(() => matchPrefix('k3f', ids)).toThrow('"k3f" matches k3f9aa, k3f9ab; give more of the id');
  });
  test('an empty id is a mistake in the command line, also where there is only one session', () => {
    expect(() => matchPrefix('', ['k3'])).toThrow(expect.objectContaining({ exitCode: 2, code: 'usage' }));
  });
  test('none is an error that says where to look', () => {
    expect(() => matchPrefix('q', ids)).toThrow('session_not_found');
  });
});

test('--preempt goes with an interrupt or alone; with another mode the line is refused before anything is sent', async () => {
  const sent = (mode: string) =>
    inject(
      {
        flags: new Flags([
          { name: 'preempt', value: true },
          { name: 'mode', value: mode },
        ]),
        command: 'steer',
        args: ['k3f9', 'stop'],
        env: {},
      },
      'message',
      () => Promise.reject(new Error('sent')),
    );
  await expect(sent('finish_step')).rejects.toThrow('--preempt goes with --mode interrupt_immediate, not finish_step');
  await expect(sent('audit_only')).rejects.toThrow('--preempt goes with --mode interrupt_immediate, not audit_only');
});

describe('a call needs no id when only one can be meant', () => {
  const one = [{ call_id: 'c1_1', tool: 'edit_file' }];
  const two = [...one, { call_id: 'c1_2', tool: 'run_command' }];
  test('the only one', () => expect(chooseCall(undefined, one)).toBe('c1_1'));
  test('by the beginning of its id', () => expect(chooseCall('c1_2', two)).toBe('c1_2'));
  test('an unknown id is passed on, for the session to say what it knows', () => {
    expect(chooseCall('gone', two)).toBe('gone');
  });
  test('an empty id is a mistake, also where there is only one call', () => {
    expect(() => chooseCall('', one)).toThrow(expect.objectContaining({ exitCode: 2, code: 'usage' }));
  });
  test('none, several and ambiguous are refused', () => {
    expect(() => chooseCall(undefined, [])).toThrow('not_pending');
    expect(() => chooseCall(undefined, two)).toThrow('c1_1 (edit_file), c1_2 (run_command)');
    expect(() => chooseCall('c1', two)).toThrow('give more of the id');
  });
});

describe('the state folder', () => {
  test('is the flag’s, then the variable’s, then the user’s', () => {
    expect(stateDirOf(flags({ 'state-dir': 'rel' }), { INIT_CWD: '/typed', COX_STATE_DIR: '/var/x' })).toBe(
      '/typed/rel',
    );
    expect(stateDirOf(flags(), { COX_STATE_DIR: '/var/x', XDG_STATE_HOME: '/xdg' })).toBe('/var/x');
    expect(stateDirOf(flags(), { XDG_STATE_HOME: '/xdg' })).toBe('/xdg/coxswain');
    expect(stateDirOf(flags(), { XDG_STATE_HOME: 'relative' })).toBe(join(homedir(), '.local/state/coxswain'));
  });
});

describe('the bus', () => {
  test('is --nats before all, NATS_URL before the default folder, and a folder that was typed before NATS_URL', async () => {
    const empty = await mkdtemp(join(tmpdir(), 'cox-bus-'));
    try {
      const env = { NATS_URL: 'nats://env', COX_STATE_DIR: empty };
      const named = await findBus(flags({ nats: 'nats://flag', 'state-dir': empty }), env);
      expect(named.address).toMatchObject({ servers: 'nats://flag', source: '--nats' });
      expect((await findBus(flags(), env)).address).toMatchObject({ servers: 'nats://env', source: 'NATS_URL' });
      expect((await findBus(flags({ 'state-dir': empty }), env)).address).toBeNull();
      expect(await findBus(flags(), { COX_STATE_DIR: empty })).toEqual({ address: null, stateDir: empty });
    } finally {
      await rm(empty, { recursive: true });
    }
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
])('the program of cox on Node %s', (version, problem) => {
  expect(nodeProblem(version)).toBe(problem);
});

test.each([
  [{ copies: 1, current: 1 }, 'ok', 'stream S: 2 messages, 1 copy'],
  [{ copies: 3, current: 3 }, 'ok', 'stream S: 2 messages, 3 copies'],
  [{ copies: 3, current: 2 }, 'warning', 'stream S: 2 messages, 3 copies, of which 1 is not up to date'],
  [{ copies: 3, current: 3, atRisk: true }, 'warning', expect.stringContaining('its blocks are compressed')],
  [{ copies: 1, current: 1, bytes: 79 }, 'ok', 'stream S: 2 messages, 1 copy'],
  [{ copies: 1, current: 1, bytes: 80 }, 'warning', expect.stringContaining('80 of 100 bytes')],
  [{ copies: 1, current: 1, bytes: 100 }, 'failed', expect.stringContaining('100 of 100 bytes')],
])('the copies of a stream, %j', (copies, status, message) => {
  const stream = { name: 'S', present: true, messages: 2, bytes: 0, maxBytes: 100, atRisk: false, ...copies };
  expect(streamCheck(stream)).toMatchObject({ status, message });
});
