/** What `cox acp` reports about an editor's answers to permission requests. */
import { type AgentContext, RequestError } from '@agentclientprotocol/sdk';
import type { Session } from '@coxswain/client';
import { afterEach, expect, test, vi } from 'vitest';
import { PermissionRequests } from '../src/permission-requests.ts';

afterEach(() => vi.restoreAllMocks());

const HOSTILE = 'no\u001b]0;owned\u0007\ncox acp: all is well\r\u202e!';
const SHOWN = 'no]0;owned\n  cox acp: all is well!';

/** The session's answer to an `approve`; throws its rejection. */
type Approve = (body: Record<string, unknown>) => void;

/** Requests one call; the editor and the session answer. Resolves when the session has answered `sends` times. */
async function decided(
  editor: () => Promise<unknown>,
  approve: Approve,
  sends: number,
): Promise<{ readonly diagnostics: string; readonly requests: number }> {
  const write = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
  const request = vi.fn(editor);
  let sent = 0;
  let answered: () => void = () => undefined;
  const done = new Promise<void>((resolve) => {
    answered = resolve;
  });
  const send = async (_verb: string, body: Record<string, unknown>) => {
    if (++sent === sends) setImmediate(answered);
    approve(body);
  };
  const session = { wire: { send } } as unknown as Session;
  const requests = new PermissionRequests({
    client: { request } as unknown as AgentContext,
    sessionId: 's',
    root: '/work',
    isConnected: () => true,
    use: (_id, task) => task(session),
  });
  const event = { callId: 'c1_1', tool: 'write_file', args: {}, question: null, requestedBy: 'default' };
  requests.sync([{ sessionId: 's', event } as unknown as Parameters<typeof requests.sync>[0][number]]);
  await done;
  return { diagnostics: write.mock.calls.map(([text]) => text).join(''), requests: request.mock.calls.length };
}

const selects = (optionId: string) => async () => ({ outcome: { outcome: 'selected', optionId } });
const failure = (code: string, message = code) => Object.assign(new Error(message), { code });

test('an editor’s error text cannot drive the terminal', async () => {
  const fails = () => Promise.reject(new RequestError(-32_603, HOSTILE));
  expect(await decided(fails, () => undefined, 1)).toMatchObject({
    diagnostics: `cox acp: c1_1 is denied: the editor answered the permission request with an error: ${SHOWN}\n`,
  });
  const late = () => {
    throw failure('receipt_timeout', HOSTILE);
  };
  const { diagnostics } = await decided(fails, late, 1);
  expect(diagnostics).toContain(`cox acp: c1_1 is still undecided: receipt_timeout: ${SHOWN}\n`);
});

test.each([
  ['allow_always', 'allow', 'allowed', 'not_rememberable'],
  ['reject_always', 'deny', 'denied', 'too_many_rules'],
])('an answer %s that the session cannot remember decides this call', async (option, decision, done, code) => {
  const approve = vi.fn<Approve>(({ remember }) => {
    if (remember !== undefined) throw failure(code);
  });
  const { diagnostics, requests } = await decided(selects(option), approve, 2);
  expect(approve.mock.calls.map(([body]) => body)).toEqual([
    { call_id: 'c1_1', decision, remember: 'session' },
    { call_id: 'c1_1', decision },
  ]);
  expect(requests).toBe(1);
  expect(diagnostics).toBe(`cox acp: c1_1 is ${done}, not remembered: ${code}: ${code}\n`);
});

test('a call is requested again if the answer does not reach the session, at most three times', async () => {
  const full = () => {
    throw failure('quota_exceeded');
  };
  const { diagnostics, requests } = await decided(selects('allow_once'), full, 3);
  expect(requests).toBe(3);
  expect(diagnostics).toBe('cox acp: c1_1 is still undecided: quota_exceeded: quota_exceeded\n'.repeat(3));
});
