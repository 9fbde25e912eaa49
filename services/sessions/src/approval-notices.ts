/**
 * Notices of waiting approvals: on the bus for whoever listens there, and as a webhook, signed as Standard Webhooks says
 * (https://www.standardwebhooks.com, version 1.0.0).
 *
 * W1  It goes where the operator of the host says, and nowhere else: nothing of a session chooses the address, and a
 *     redirect is not followed.
 * W2  A notice has one id, whoever gives it and however often: receivers drop what they know.
 * W3  Every try, and their number, is bounded. A session waits for none of it.
 */
import { createHmac } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { ApprovalNotices, Clock, Log } from '@coxswain/ports';
import { type ApprovalNotice, type BackOff, BOUNDS, cutText, delayAfter } from '@coxswain/protocol';

/** Where notices go. */
export interface NoticeTargets {
  /** Tells the listeners of the tenant's subject. Returns at once. */
  readonly tell?: ((notice: ApprovalNotice) => void) | undefined;
  readonly webhook?: Webhook | undefined;
}

/** A webhook's address, and the bytes that its notices are signed with. */
export interface Webhook {
  readonly url: URL;
  readonly secret: Uint8Array;
}

/** The settings of a host do not make a webhook. */
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
 * Reads the webhook of a host's environment: COX_APPROVAL_WEBHOOK, with COX_APPROVAL_WEBHOOK_SECRET or the file that
 * COX_APPROVAL_WEBHOOK_SECRET_FILE names.
 * @returns undefined where none is set.
 * @throws WebhookSettingsError naming the variable.
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

/** The port; undefined where nobody is to be told. */
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
        // The connection is gone, and the host with it soon.
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

/** What a receiver knows a notice by. A dot parts what is signed, so there is none in it. */
function messageId(key: string): string {
  return `msg_${key.replaceAll('.', '_')}`;
}

/** The value of the header `webhook-signature`. */
export function signatureOf(secret: Uint8Array, id: string, timestamp: number, body: string): string {
  return `v1,${createHmac('sha256', secret).update(`${id}.${timestamp}.${body}`).digest('base64')}`;
}

/** @returns null where it was taken; else why not, and whether another try is of no use. */
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
    // Nobody reads what it says; without this the connection would be kept for it.
    await response.body?.cancel();
    if (response.ok) return null;
    // 410: whoever listens there wants no more of it.
    return { problem: `it responded with HTTP ${response.status}`, isFinal: response.status === 410 };
  } catch (error) {
    const { message, cause } = error as Error;
    return { problem: cause instanceof Error ? `${message}: ${cause.message}` : message, isFinal: false };
  }
}
