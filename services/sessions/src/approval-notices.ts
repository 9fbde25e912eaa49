/**
 * Notices of pending approvals: messages on the bus, and a webhook that is signed according to Standard Webhooks 1.0.0
 * (https://www.standardwebhooks.com).
 *
 * W1  The operator of the host sets the address. No part of a session influences it, and redirects are not followed.
 * W2  A notice has one id, for every host and every attempt, so that receivers can drop duplicates.
 * W3  The number of attempts and the duration of each are bounded. A session does not wait for them.
 */
import { createHmac } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { ApprovalNotices, Clock, Log } from '@coxswain/ports';
import { type ApprovalNotice, type BackOff, BOUNDS, cutText, delayAfter } from '@coxswain/protocol';

/** Targets of notices. */
export interface NoticeTargets {
  /** Publishes a notice on the tenant's subject. Returns immediately. */
  readonly tell?: ((notice: ApprovalNotice) => void) | undefined;
  readonly webhook?: Webhook | undefined;
}

/** URL of a webhook, and the key for its signatures. */
export interface Webhook {
  readonly url: URL;
  readonly secret: Uint8Array;
}

/** The settings of a host's notices are invalid. */
export class WebhookSettingsError extends Error {
  override readonly name = 'WebhookSettingsError';
  readonly code = 'invalid_field';
}

const ATTEMPTS_MAX = 8;
const RETRIES: BackOff = { firstMs: 1_000, maxMs: 60_000 };
const ANSWER_MS = 10_000;
const SECRET_MIN_BYTES = 24;
const SECRET_MAX_BYTES = 64;

/**
 * Whether notices are published on the bus: COX_APPROVAL_SUBJECT, `on` or `off`; without it they are not.
 * @throws WebhookSettingsError for another value, which would publish nothing silently.
 */
export function publishesNotices(env: NodeJS.ProcessEnv): boolean {
  const value = env.COX_APPROVAL_SUBJECT?.trim() || 'off';
  if (value !== 'on' && value !== 'off') throw new WebhookSettingsError('COX_APPROVAL_SUBJECT must be on or off');
  return value === 'on';
}

/**
 * Reads the webhook settings: COX_APPROVAL_WEBHOOK, with COX_APPROVAL_WEBHOOK_SECRET, or with
 * COX_APPROVAL_WEBHOOK_SECRET_FILE for a file.
 * @returns undefined if no webhook is set.
 * @throws WebhookSettingsError with the name of the variable.
 */
export async function webhookFrom(env: NodeJS.ProcessEnv): Promise<Webhook | undefined> {
  const address = env.COX_APPROVAL_WEBHOOK?.trim();
  if (!address) return undefined;
  const url = URL.parse(address);
  if (!url || !/^https?:$/.test(url.protocol))
    throw new WebhookSettingsError('COX_APPROVAL_WEBHOOK is not an http or https address');
  if (url.username || url.password)
    throw new WebhookSettingsError('COX_APPROVAL_WEBHOOK must not contain a user: notifications are signed instead');
  const file = env.COX_APPROVAL_WEBHOOK_SECRET_FILE?.trim();
  const text = file ? await secretIn(file) : env.COX_APPROVAL_WEBHOOK_SECRET?.trim();
  const named = file ? 'COX_APPROVAL_WEBHOOK_SECRET_FILE' : 'COX_APPROVAL_WEBHOOK_SECRET';
  const encoded = /^whsec_([A-Za-z0-9+/]+={0,2})$/.exec(text ?? '')?.[1];
  const secret = Buffer.from(encoded ?? '', 'base64');
  if (secret.length < SECRET_MIN_BYTES || secret.length > SECRET_MAX_BYTES) {
    const form = `whsec_ and the base64 of ${SECRET_MIN_BYTES} to ${SECRET_MAX_BYTES} bytes`;
    throw new WebhookSettingsError(`${named} must be ${form}; for example: echo "whsec_$(openssl rand -base64 32)"`);
  }
  return { url, secret };
}

async function secretIn(file: string): Promise<string> {
  try {
    return (await readFile(file, 'utf8')).trim();
  } catch (error) {
    throw new WebhookSettingsError(`COX_APPROVAL_WEBHOOK_SECRET_FILE cannot be read: ${(error as Error).message}`);
  }
}

/** Creates the port for notices; undefined without a target. */
export function createApprovalNotices(
  { tell, webhook }: NoticeTargets,
  clock: Clock,
  log: Log,
): ApprovalNotices | undefined {
  if (!tell && !webhook) return undefined;
  return {
    async deliver(key, notice, signal) {
      try {
        tell?.(notice);
      } catch (error) {
        // The connection has ended, so the host stops soon.
        log.warn({ session_id: notice.data.session_id, error }, 'a notification was not sent');
      }
      if (!webhook) return { status: 'delivered', attempts: 1 };
      const body = JSON.stringify(notice);
      const id = messageId(key);
      let problem = '';
      for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt++) {
        const answer = await post(webhook, id, body, clock, signal);
        if (signal.aborted) return { status: 'cancelled', attempts: attempt };
        if (answer === null) return { status: 'delivered', attempts: attempt };
        problem = answer.problem;
        log.warn({ session_id: notice.data.session_id, attempt, problem }, 'the webhook rejected a notification');
        if (answer.isFinal || attempt === ATTEMPTS_MAX) return failed(attempt, problem);
        await clock.sleep(delayAfter(attempt, RETRIES), signal);
        if (signal.aborted) return { status: 'cancelled', attempts: attempt };
      }
      return failed(ATTEMPTS_MAX, problem);
    },
  };
}

function failed(attempts: number, problem: string) {
  const message = cutText(problem, BOUNDS.reasonMaxBytes / 4);
  return { status: 'failed' as const, attempts, error: { code: 'notice_failed' as const, message } };
}

/** The id of a notice. It must not contain a dot, which separates the signed parts. */
function messageId(key: string): string {
  return `msg_${key.replaceAll('.', '_')}`;
}

/**
 * The value of the header `webhook-signature`.
 * @param timestamp seconds since the epoch.
 */
export function signatureOf(secret: Uint8Array, id: string, timestamp: number, body: string): string {
  return `v1,${createHmac('sha256', secret).update(`${id}.${timestamp}.${body}`).digest('base64')}`;
}

/**
 * Sends one attempt. Returns null if the receiver accepted it; otherwise the problem, and whether further attempts are
 * useless.
 */
async function post(
  { url, secret }: Webhook,
  id: string,
  body: string,
  clock: Clock,
  signal: AbortSignal,
): Promise<{ readonly problem: string; readonly isFinal: boolean } | null> {
  const timestamp = Math.floor(clock.nowMs() / 1_000);
  try {
    const response = await fetch(url, {
      method: 'POST',
      body,
      redirect: 'manual',
      headers: {
        'content-type': 'application/json',
        'user-agent': 'coxswain',
        'webhook-id': id,
        'webhook-timestamp': String(timestamp),
        'webhook-signature': signatureOf(secret, id, timestamp, body),
      },
      signal: AbortSignal.any([signal, AbortSignal.timeout(ANSWER_MS)]),
    });
    // The response body is not needed. Without this call, the connection stays occupied.
    await response.body?.cancel();
    if (response.ok) return null;
    // 410: the receiver no longer wants notices.
    return { problem: `it responded with HTTP ${response.status}`, isFinal: response.status === 410 };
  } catch (error) {
    const { message, cause } = error as Error;
    return { problem: cause instanceof Error ? `${message}: ${cause.message}` : message, isFinal: false };
  }
}
