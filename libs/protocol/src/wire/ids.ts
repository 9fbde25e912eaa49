/**
 * Identifiers of sessions, tenants, hosts and commands. A program checks an id by these schemas before it uses the id
 * in a subject, a filter, a key or a file name. They refuse `*`, `>`, `.`, spaces and the empty string.
 */
import * as z from 'zod';
import { CoxswainError } from '../catalogues/error-codes.ts';
import { cutText } from './unicode-text.ts';

/** 1 to 64 characters of `A-Z a-z 0-9 _ -`. */
export const ID_PATTERN = /^[A-Za-z0-9_-]{1,64}$/;

const id = (what: string) =>
  z.string().regex(ID_PATTERN, { error: `${what} must be 1 to 64 characters of A-Z a-z 0-9 _ -` });

/** A session's id, unique within its tenant. */
export const SessionId = id('session id').brand<'SessionId'>();
export type SessionId = z.infer<typeof SessionId>;

/** The name of a tenant: a token of subjects. */
export const TenantId = id('tenant').brand<'TenantId'>();
export type TenantId = z.infer<typeof TenantId>;

/** The name of a host. Every record that the host writes contains it, in `attempt`. */
export const HostName = id('a host’s name');

/**
 * The id of a command within its session. The sender may choose it; otherwise the position in the command stream is
 * used.
 */
export const CommandId = id('command id').brand<'CommandId'>();
export type CommandId = z.infer<typeof CommandId>;

/**
 * The id of a command whose sender chose none.
 * @param incarnation the name and the creation time of the command stream: a stream that is created again has other
 *   ids.
 * @param seq the position of the command in the stream.
 */
export function positionalCommandId(
  incarnation: { readonly stream: string; readonly created: string },
  seq: number,
): CommandId {
  return CommandId.parse(`${incarnation.stream}-${incarnation.created}-${seq}`);
}

/** The tenant of a bus for which no tenants are configured. */
export const DEFAULT_TENANT = TenantId.parse('default');

/** A session and its tenant. Both together identify a session on a bus. */
export interface SessionRef {
  readonly tenant: TenantId;
  readonly sessionId: SessionId;
}

/** The key of a session in a map of several tenants. Neither id can contain a slash. */
export function sessionKey({ tenant, sessionId }: SessionRef): string {
  return `${tenant}/${sessionId}`;
}

/** An id from a caller is invalid, for example because it contains a wildcard of subjects. */
export class InvalidIdError extends CoxswainError {
  override readonly name = 'InvalidIdError';
  override readonly code = 'invalid_id';
  /** The name of the invalid field or setting, such as `tenant` or `COX_HOST_NAME`. */
  readonly field: string;
  /** @param takes the rule that the id breaks. */
  constructor(field: string, given: unknown, takes: string) {
    const shown = typeof given === 'string' ? JSON.stringify(cutText(given, GIVEN_SHOWN_MAX)) : `a ${typeof given}`;
    super('invalid_id', `${field} ${shown}: ${takes}`);
    this.field = field;
  }
}

/** Characters of an invalid id in a message: an attacker may send a long one. */
const GIVEN_SHOWN_MAX = 64;

/** Validates an id of a caller. @throws InvalidIdError, which names the field. */
export function readId<S extends z.ZodType>(schema: S, field: string, given: unknown): z.output<S> {
  const parsed = schema.safeParse(given);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw new InvalidIdError(field, given, issue?.code === 'invalid_type' ? 'must be a text' : (issue?.message ?? ''));
}

/**
 * Checks both tokens of a session reference.
 * @throws InvalidIdError naming the token that is wrong.
 */
export function sessionRef(sessionId: string, tenant: string = DEFAULT_TENANT): SessionRef {
  return { tenant: readId(TenantId, 'tenant', tenant), sessionId: readId(SessionId, 'session', sessionId) };
}

/**
 * A short name for a long text, to recognize it: 64 bits as 16 hexadecimal digits. Two 32-bit hashes of the UTF-16 code
 * units, in the manner of FNV-1a. Texts with equal fingerprints can be constructed.
 */
export function fingerprint(text: string): string {
  let one = 0x811c9dc5;
  let other = 0x2f0b4c47;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    one = Math.imul(one ^ unit, 0x01000193);
    other = Math.imul(other ^ unit, 0x85ebca6b) ^ (other >>> 13);
  }
  return hex(one) + hex(other);
}

function hex(bits: number): string {
  return (bits >>> 0).toString(16).padStart(8, '0');
}
