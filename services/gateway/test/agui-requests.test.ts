/** What an AG-UI request says: the user's text, and answers to interrupts that the session has or has had. */
import type { BusSession } from '@coxswain/client';
import type { SessionStatus } from '@coxswain/protocol';
import { describe, expect, test } from 'vitest';
import { findUnknownInterrupt } from '../src/agui/known-interrupts.ts';
import { readAnswers } from '../src/agui/run-commands.ts';
import { readRunInput } from '../src/agui/run-input.ts';
import type { Principal } from '../src/auth/principal.ts';
import { LimitedReads } from '../src/limited-reads.ts';

const PRINCIPAL: Principal = { name: 'someone', tenant: 'default', scopes: new Set(['admin']), expiresAt: null };

const inputOf = (more: object) => ({ threadId: 't', runId: 'r', messages: [], ...more });

const answered = (interruptId: string, status: string) =>
  readAnswers(PRINCIPAL, readRunInput(inputOf({ resume: [{ interruptId, status }] })));

describe('the user’s text', () => {
  const context = [{ description: 'page', value: 'orders' }];
  const said = (content: unknown, more: object) =>
    readRunInput(inputOf({ messages: [{ id: 'm', role: 'user', content }], ...more })).message;

  test.each([[' \n'], ['\u200b\u2060'], ['\u3164'], ['\u2800']])('%j shows nothing and is rejected', (text) => {
    for (const more of [{}, { context }])
      for (const content of [text, [{ type: 'text', text }]])
        expect(() => said(content, more)).toThrow(expect.objectContaining({ code: 'empty_body' }));
  });

  test('goes with its context', () => {
    expect(said('hi', { context })?.text).toMatch(/^hi\n\n<context>\npage: orders/);
  });
});

describe('an answer to the interrupt of a suspended session', () => {
  const events = [{ type: 'suspended' }];
  const session = (suspended: object | null, past: readonly object[]) =>
    ({
      state: async () => ({ approvals: [], suspended }) as unknown as SessionStatus,
      journal: async function* () {
        yield { record: { events: past } };
      },
    }) as unknown as BusSession;
  const check = (status: string, on: BusSession) =>
    findUnknownInterrupt({ expensiveReads: new LimitedReads(1, 0) }, on, answered('suspended', status));

  test.each([['resolved'], ['cancelled']])('%s: an error if the session was never suspended', async (status) => {
    expect(await check(status, session(null, []))).toMatchObject({ code: 'not_suspended' });
    expect(await check(status, session(null, events))).toBeNull();
    expect(await check(status, session({ reason: null }, events))).toBeNull();
  });

  test('cancelled sends the session nothing', () => {
    expect(answered('suspended', 'cancelled')).toEqual([{ interruptId: 'suspended', command: null }]);
    expect(answered('suspended', 'resolved')).toMatchObject([{ command: { verb: 'resume' } }]);
  });
});
