/** What `cox acp` reports about an editor's answers to permission requests. */
import { type AgentContext, RequestError } from '@agentclientprotocol/sdk';
import { afterEach, expect, test, vi } from 'vitest';
import { PermissionRequests } from '../src/permission-requests.ts';

afterEach(() => vi.restoreAllMocks());

const HOSTILE = 'no\u001b]0;owned\u0007\ncox acp: all is well\r\u202e!';
const SHOWN = 'no]0;owned\n  cox acp: all is well!';

/** The diagnostics, where the editor answers with an error and the session with `approve`. */
async function reported(approve: () => Promise<void>): Promise<string> {
  const write = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
  let answered: () => void = () => undefined;
  const done = new Promise<void>((resolve) => {
    answered = resolve;
  });
  const requests = new PermissionRequests({
    client: { request: () => Promise.reject(new RequestError(-32_603, HOSTILE)) } as unknown as AgentContext,
    sessionId: 's',
    root: '/work',
    isConnected: () => true,
    use: async () => {
      try {
        await approve();
        return undefined as never;
      } finally {
        setImmediate(answered);
      }
    },
  });
  const event = { callId: 'c1_1', tool: 'write_file', args: {}, question: null, requestedBy: 'default' };
  requests.sync([{ sessionId: 's', event } as unknown as Parameters<typeof requests.sync>[0][number]]);
  await done;
  return write.mock.calls.map(([text]) => text).join('');
}

test('an editor’s error text cannot drive the terminal', async () => {
  expect(await reported(async () => undefined)).toBe(
    `cox acp: c1_1 is denied: the editor answered the permission request with an error: ${SHOWN}\n`,
  );
  const failing = () => Promise.reject(Object.assign(new Error(HOSTILE), { code: 'receipt_timeout' }));
  expect(await reported(failing)).toContain(`cox acp: c1_1 is still undecided: receipt_timeout: ${SHOWN}\n`);
});
