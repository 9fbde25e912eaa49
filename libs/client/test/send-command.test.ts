/** A command on its way into the command stream, and the wait for its receipt. */
import { SessionId, sessionRef, TenantId } from '@coxswain/protocol';
import { expect, test } from 'vitest';
import { sendCommand } from '../src/send-command.ts';
import { FULL, NO_LEADER, storeConnection } from './store-connection.ts';

const ref = sessionRef(SessionId.parse('s'), TenantId.parse('default'));

test.each([
  ['it was refused each time', [FULL], 'quota_exceeded'],
  ['an earlier attempt has no acknowledgement', [NO_LEADER, FULL], 'command_not_stored'],
  ['the stream knows its id', [{ seq: 7, duplicate: true }, FULL], 'command_not_stored'],
])(
  'a command that finds the stream full is rejected only if it is certainly not stored: %s',
  async (_when, answers, code) => {
    const { nc } = storeConnection(() => answers.shift());
    await expect(sendCommand({ nc }, ref, 'signal', { name: 'tide' })).rejects.toMatchObject({ code });
  },
);
