import { resolve } from 'node:path';
import { expect, test } from 'vitest';
import { approveCommand, pastedCommand } from '../src/instance/mod.ts';

const env = { XDG_STATE_HOME: '/home/ann/state' };
/** The command of this checkout. */
const COX = resolve(import.meta.dirname, '../bin/cox.mjs');
const byDefault = '/home/ann/state/coxswain';
const at = (source: '--nats' | 'NATS_URL' | 'state-dir') => ({
  servers: 'nats://secret@host',
  token: undefined,
  source,
});

test.each([
  ['the default folder', null, byDefault, env, `${COX} session show s1`],
  ['another folder', null, '/srv/cox', env, `${COX} session show s1 --state-dir /srv/cox`],
  ['a folder with a space', null, "/srv/ann's cox", env, `${COX} session show s1 --state-dir '/srv/ann'\\''s cox'`],
  ['an instance that ran already', at('state-dir'), '/srv/cox', env, `${COX} session show s1 --state-dir /srv/cox`],
  [
    'a folder that a variable names',
    null,
    '/srv/cox',
    { ...env, COX_STATE_DIR: '/srv/cox' },
    `${COX} session show s1 --state-dir /srv/cox`,
  ],
  [
    'the default folder before NATS_URL',
    null,
    byDefault,
    { ...env, NATS_URL: 'x' },
    `${COX} session show s1 --state-dir ${byDefault}`,
  ],
  ['NATS_URL', at('NATS_URL'), byDefault, env, `${COX} session show s1`],
  ['--nats', at('--nats'), byDefault, env, `${COX} session show s1 --nats URL`],
] as const)('the printed command reaches %s', (_what, address, stateDir, variables, line) => {
  expect(pastedCommand('session show s1', { address, stateDir }, variables)).toBe(line);
});

test.each([
  ['/usr/local/bin/cox', 'cox session show s1'],
  ['/usr/local/bin/coxswain', 'coxswain session show s1'],
  ['/home/ann/coxswain/node_modules/.bin/cox', `${COX} session show s1`],
  ['/home/ann/coxswain/libs/cli/bin/cox.mjs', `${COX} session show s1`],
])('the command that %s prints works in every folder', (script, line) => {
  expect(pastedCommand('session show s1', { address: null, stateDir: byDefault }, env, script)).toBe(line);
});

test.each([
  ['c1_1', 'approve s1 c1_1'],
  ['call_1|fc_2', "approve s1 'call_1|fc_2'"],
  ["a'\u001b[2J;b", "approve s1 'a'\\''[2J;b'"],
])('the id of a call is pasted as one word: %j', (callId, line) => {
  expect(approveCommand('s1', callId)).toBe(line);
});
