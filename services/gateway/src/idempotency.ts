/** Idempotency keys: the same request again means the same session and the same command, whichever gateway takes it. */
import { createHash } from 'node:crypto';
import type { Session } from '@coxswain/client';
import { canonicalJson, parseBody, type Verb } from '@coxswain/protocol';
import type { Principal } from './auth/principal.ts';
import { Problem } from './problem.ts';

/** What a key stands for. Ids follow from it, so that no gateway has to remember any. */
export interface KeyedIds {
  /** Of a command: the same for the same key at the same address. */
  readonly commandId: string;
  /** Of the session that a start or a fork makes: the same for the same key. */
  readonly sessionId: string;
  /** Of that start or fork: the same for the same request only, so that the session's first record tells whose it is. */
  readonly startId: string;
}

/** What a key came with. */
export interface KeyedRequest {
  /** The method and the path. */
  readonly address: string;
  readonly body: unknown;
}

/** The ids that a key stands for. @throws Problem `invalid_field` for a key that is none. */
export function idsOfKey(key: string, { tenant, name }: Principal, { address, body }: KeyedRequest): KeyedIds {
  if (!/^[\x21-\x7e]{1,255}$/.test(key))
    throw new Problem('invalid_field', 'idempotency-key: must be 1 to 255 visible ASCII characters', {
      field: 'idempotency-key',
    });
  const whose = [tenant, name, key];
  return {
    commandId: digest('command', [...whose, address]),
    sessionId: digest('session', whose),
    startId: digest('start', [...whose, address, written(body)]),
  };
}

function written(body: unknown): string {
  try {
    return canonicalJson(body);
  } catch {
    // It was read from JSON: what can be wrong with it is told.
    const message = 'body: is nested too deep, or has a number that is too large';
    throw new Problem('invalid_field', message, { field: 'body' });
  }
}

function digest(what: string, parts: readonly string[]): string {
  return createHash('sha256')
    .update(JSON.stringify([what, ...parts]))
    .digest('base64url')
    .slice(0, 32);
}

/**
 * A key's session may be there already: by this request, which changes nothing then, or by another.
 * @param startId the command's id, which may be one that the request names.
 * @throws Problem `idempotency_key_reused`.
 */
export async function refuseOtherStart(session: Session, startId: string | undefined): Promise<void> {
  for await (const { record } of session.journal()) {
    const { input } = record;
    if (input.type === 'command' && (input.copied_from?.command_id ?? input.command_id) === startId) return;
    throw reused(session);
  }
}

/** How long a session may take to record what is compared: a second request may come right behind the first. */
const RECORDED_WITHIN_MS = 2_000;

/**
 * A key's command that the bus had already was this one, or another. Where nobody records it in time, nothing is known of it.
 * @throws Problem `idempotency_key_reused`, where the session has recorded another.
 */
export async function refuseOtherCommand(
  session: Session,
  commandId: string,
  verb: Verb,
  body: unknown,
): Promise<void> {
  const read = parseBody(verb, body);
  if (!read.ok) return;
  for await (const { input } of session.events({ signal: AbortSignal.timeout(RECORDED_WITHIN_MS) })) {
    if (input.type !== 'command' || input.command_id !== commandId) continue;
    if (canonicalJson(input.body) === canonicalJson(read.body)) return;
    throw reused(session);
  }
}

function reused({ id }: Session): Problem {
  return new Problem('idempotency_key_reused', 'the idempotency key was used for another request', {
    field: 'idempotency-key',
    sessionId: id,
  });
}
