/** What a command line that fails is answered. */
import { CommandRejectedError, CoxswainError } from '@coxswain/client';
import { ERROR_CATALOGUE } from '@coxswain/protocol';
import { FORMAT_VERSIONS } from '@coxswain/session';
import { RequestError } from '@nats-io/nats-core';
import { afterEach, expect, test, vi } from 'vitest';
import { COMMANDS } from '../src/line/command-table.ts';
import { dispatch } from '../src/line/dispatch.ts';

afterEach(() => vi.restoreAllMocks());

async function told(error: Error): Promise<{ code: number; err: string; out: string }> {
  const env = COMMANDS.find(({ name }) => name === 'env');
  if (!env) throw new Error('there is no command env');
  vi.spyOn(env, 'load').mockResolvedValue({ run: () => Promise.reject(error) });
  let err = '';
  let out = '';
  vi.spyOn(process.stderr, 'write').mockImplementation((text) => {
    err += text;
    return true;
  });
  vi.spyOn(process.stdout, 'write').mockImplementation((text) => {
    out += text;
    return true;
  });
  return { code: await dispatch(['env', '--json'], {}), err, out };
}

test('--version --json reports the versions of all formats', async () => {
  const info = vi.spyOn(console, 'info').mockImplementation(() => undefined);
  expect(await dispatch(['--version', '--json'], {})).toBe(0);
  expect(JSON.parse(info.mock.calls[0]?.[0])).toEqual({ type: 'version', ...FORMAT_VERSIONS });
});

test('what the server does not let this user do is not_permitted, and no mistake of ours', async () => {
  const violation = Object.assign(new Error('Permissions Violation for Publish to "x"'), {
    name: 'PermissionViolationError',
  });
  const request = new RequestError(violation.message, { cause: violation });
  const { code, err, out } = await told(new CoxswainError('internal', violation.message, { cause: request }));
  expect(code).toBe(1);
  expect(JSON.parse(out)).toMatchObject({ type: 'error', code: 'not_permitted' });
  expect(err).not.toContain('    at ');
});

test('what was thrown with a catalogued code is told with what to do', async () => {
  const { err, out } = await told(Object.assign(new Error('port 4222 is taken'), { code: 'port_in_use' }));
  const remedy = ERROR_CATALOGUE.port_in_use.caller;
  expect(err).toBe(`cox: port_in_use: port 4222 is taken\n  → ${remedy}\n`);
  expect(JSON.parse(out)).toMatchObject({ code: 'port_in_use', remedy });
});

test('a rejection is printed as JSON with its field and its detail', async () => {
  const detail = { by: 'rule', rule: 'rules[0]' };
  const { out } = await told(
    new CommandRejectedError('edited_call_denied', 'no', { field: 'args', commandId: 'c', detail }),
  );
  expect(JSON.parse(out)).toMatchObject({ code: 'edited_call_denied', field: 'args', detail });
});

test('a message that quotes others moves no terminal', async () => {
  const { err } = await told(Object.assign(new Error('deleted (\u001b[31mred\u001b]0;pwn\u0007 — é)'), { code: 'x' }));
  expect(err).toBe('cox: x: deleted ([31mred]0;pwn — é)\n');
});
