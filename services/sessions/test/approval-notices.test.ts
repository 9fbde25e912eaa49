/** Webhooks of approvals: what is sent, when it is tried again, when no more, and which settings make one. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Clock, Log } from '@coxswain/ports';
import type { ApprovalNotice } from '@coxswain/protocol';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createApprovalNotices, publishesNotices, signatureOf, webhookFrom } from '../src/mod.ts';

const SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
const notice: ApprovalNotice = {
  type: 'approval.requested',
  timestamp: '2026-01-01T00:00:00.000Z',
  data: { tenant: 'default', session_id: 's', persona: 'p', call_id: 'c', tool: 't', args: {}, requested_by: 'rule:x' },
};
const quiet: Log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

/** A receiver that answers with each status in turn; the clock sleeps no time and says how long it should have. */
async function receiver(...statuses: readonly number[]) {
  const ids: string[] = [];
  const slept: number[] = [];
  const server = createServer((request, response) => {
    const status = statuses[Math.min(ids.length, statuses.length - 1)] ?? 500;
    ids.push(String(request.headers['webhook-id']));
    request.resume();
    response.writeHead(status, status === 307 ? { location: '/elsewhere' } : {}).end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const clock = {
    nowMs: () => 1_700_000_000_000,
    sleep: async (ms: number) => void slept.push(ms),
  } as unknown as Clock;
  const url = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`);
  const notices = createApprovalNotices({ webhook: { url, secret: Buffer.alloc(32, 7) } }, clock, quiet);
  if (!notices) return expect.fail('there is a webhook');
  return { ids, slept, deliver: (signal = new AbortController().signal) => notices.deliver('t.s.4-1', notice, signal) };
}

describe('a webhook', () => {
  test('is signed as Standard Webhooks has it, by the example of its specification', () => {
    const secret = Buffer.from('MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', 'base64');
    const body = '{"test": 2432232314}';
    expect(signatureOf(secret, 'msg_p5jXN8AQM9LWM0D4loKWxJek', 1_614_265_330, body)).toBe(
      'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
    );
  });

  test('is tried again under the same id, after longer and longer pauses, eight times at most', async () => {
    const { ids, slept, deliver } = await receiver(500);
    expect(await deliver()).toEqual({
      status: 'failed',
      attempts: 8,
      error: { code: 'notice_failed', message: 'it responded with HTTP 500' },
    });
    expect(new Set(ids)).toEqual(new Set(['msg_t_s_4-1']));
    expect(slept).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000]);
  });

  test('is given once it was taken', async () => {
    const { ids, deliver } = await receiver(503, 200);
    expect(await deliver()).toEqual({ status: 'delivered', attempts: 2 });
    expect(ids).toHaveLength(2);
  });

  test('is not tried again where nobody wants it, and follows nobody elsewhere', async () => {
    expect(await (await receiver(410)).deliver()).toMatchObject({ status: 'failed', attempts: 1 });
    expect(await (await receiver(307)).deliver()).toMatchObject({
      status: 'failed',
      attempts: 8,
      error: { message: 'it responded with HTTP 307' },
    });
  });

  test('ends when the call is decided', async () => {
    const { deliver } = await receiver(500);
    expect(await deliver(AbortSignal.abort())).toEqual({ status: 'cancelled', attempts: 1 });
  });
});

describe('its settings', () => {
  test('are none, or an address and a secret', async () => {
    expect(await webhookFrom({})).toBeUndefined();
    const made = await webhookFrom({
      COX_APPROVAL_WEBHOOK: 'https://ops.example.org/x',
      COX_APPROVAL_WEBHOOK_SECRET: SECRET,
    });
    expect(made?.url.href).toBe('https://ops.example.org/x');
    expect(made?.secret).toEqual(Buffer.alloc(32, 7));
  });

  test.each([
    [{ COX_APPROVAL_WEBHOOK: 'ops.example.org' }, /^COX_APPROVAL_WEBHOOK is no/],
    [{ COX_APPROVAL_WEBHOOK: 'file:///etc/passwd' }, /^COX_APPROVAL_WEBHOOK is no/],
    [{ COX_APPROVAL_WEBHOOK: 'https://u:p@example.org' }, /must not contain a user/],
    [{ COX_APPROVAL_WEBHOOK: 'https://example.org' }, /^COX_APPROVAL_WEBHOOK_SECRET must be/],
    [
      { COX_APPROVAL_WEBHOOK: 'https://example.org', COX_APPROVAL_WEBHOOK_SECRET: 'hunter2' },
      /^COX_APPROVAL_WEBHOOK_SECRET must/,
    ],
    [{ COX_APPROVAL_WEBHOOK: 'https://example.org', COX_APPROVAL_WEBHOOK_SECRET: 'whsec_c2hvcnQ=' }, /24 to 64 bytes/],
    [
      { COX_APPROVAL_WEBHOOK: 'https://example.org', COX_APPROVAL_WEBHOOK_SECRET_FILE: '/nowhere/at/all' },
      /^COX_APPROVAL_WEBHOOK_SECRET_FILE cannot be read/,
    ],
  ])('%j are refused by name', async (env, message) => {
    await expect(webhookFrom(env)).rejects.toThrow(message);
  });

  test('of the notices on the bus are on or off, and nothing else', () => {
    const values = [undefined, '', 'off', 'on'];
    expect(values.map((value) => publishesNotices({ COX_APPROVAL_SUBJECT: value }))).toEqual([
      false,
      false,
      false,
      true,
    ]);
    expect(() => publishesNotices({ COX_APPROVAL_SUBJECT: 'true' })).toThrow('COX_APPROVAL_SUBJECT must be on or off');
  });
});
