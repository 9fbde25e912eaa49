/** Errors of command lines, as they are printed. */
import { readFile } from 'node:fs/promises';
import { CommandRejectedError, CoxswainError } from '@coxswain/client';
import { ERROR_CATALOGUE } from '@coxswain/protocol';
import { FORMAT_VERSIONS } from '@coxswain/session';
import { RequestError } from '@nats-io/nats-core';
import { afterEach, expect, test, vi } from 'vitest';
import { COMMANDS } from '../src/line/mod.ts';
import { runCox } from './run-cox.ts';

afterEach(() => vi.restoreAllMocks());

/** Runs `cox env` with this error. */
async function failing(error: Error) {
  const env = COMMANDS.find(({ name }) => name === 'env');
  if (!env) throw new Error('there is no command env');
  vi.spyOn(env, 'load').mockResolvedValue({ run: () => Promise.reject(error) });
  return runCox(['env', '--json']);
}

test('--version --json reports the versions of all formats', async () => {
  const { code, out } = await runCox(['--version', '--json']);
  expect(code).toBe(0);
  expect(JSON.parse(out)).toEqual({ type: 'version', ...FORMAT_VERSIONS });
});

test('a permission violation of the server is not_permitted, without a stack', async () => {
  const violation = Object.assign(new Error('Permissions Violation for Publish to "x"'), {
    name: 'PermissionViolationError',
  });
  const request = new RequestError(violation.message, { cause: violation });
  const { code, err, out } = await failing(new CoxswainError('internal', violation.message, { cause: request }));
  expect(code).toBe(1);
  expect(JSON.parse(out)).toMatchObject({ type: 'error', code: 'not_permitted' });
  expect(err).not.toContain('    at ');
});

test('an error with a catalogued code is printed with its remedy', async () => {
  const { err, out } = await failing(Object.assign(new Error('port 4222 is taken'), { code: 'port_in_use' }));
  const remedy = ERROR_CATALOGUE.port_in_use.caller;
  expect(err).toBe(`cox: port_in_use: port 4222 is taken\n  → ${remedy}\n`);
  expect(JSON.parse(out)).toMatchObject({ code: 'port_in_use', remedy });
});

test('an error of the system is printed with its path, the reason and a remedy', async () => {
  const missing = await readFile('/no/such/file').catch((error: Error) => error);
  const { err, out } = await failing(missing as Error);
  expect(err).toBe(
    `cox: system_error: /no/such/file: no such file or directory (ENOENT)\n  → ${ERROR_CATALOGUE.system_error.caller}\n`,
  );
  expect(JSON.parse(out)).toMatchObject({ code: 'system_error' });
  const busy = Object.assign(new Error("EBUSY: resource busy or locked, unlink '/x'"), {
    ...{ code: 'EBUSY', errno: -16, syscall: 'unlink', path: '/x' },
  });
  expect((await failing(busy)).err).toContain(`cox: system_error: ${busy.message}\n`);
});

test('a rejection is printed as JSON with its field and its detail', async () => {
  const detail = { by: 'rule', rule: 'rules[0]' };
  const { out } = await failing(
    new CommandRejectedError('edited_call_denied', 'no', { field: 'args', commandId: 'c', detail }),
  );
  expect(JSON.parse(out)).toMatchObject({ code: 'edited_call_denied', field: 'args', detail });
});

test('control characters in an error are not printed', async () => {
  const { err } = await failing(
    Object.assign(new Error('deleted (\u001b[31mred\u001b]0;pwn\u0007 — é)'), { code: 'x' }),
  );
  expect(err).toBe('cox: x: deleted ([31mred]0;pwn — é)\n');
});

test('control characters in the stack of an error without a code are not printed', async () => {
  const { err } = await failing(new Error('bug \u001b]0;pwn\u0007'));
  expect(err.split('\n')[0]).toBe('cox: bug ]0;pwn');
  expect(err).toContain('Error: bug ]0;pwn\n    at ');
});
