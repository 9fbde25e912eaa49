/**
 * Identifiers. Every id that can end in a subject, a filter, a key or a file name passes through one of these
 * schemas first, so that `*`, `>`, `.`, spaces and the empty string never reach a bus.
 */
import { z } from 'zod';

/** What an id may look like: 1 to 64 characters of `A-Z a-z 0-9 _ -`. */
export const ID_PATTERN = /^[A-Za-z0-9_-]{1,64}$/;

const id = (what: string) =>
  z.string().regex(ID_PATTERN, { error: `${what} must be 1 to 64 characters of A-Z a-z 0-9 _ -` });

/** A session's id, unique within its tenant. */
export const SessionId = id('session id').brand<'SessionId'>();
/** See {@link SessionId}. */
export type SessionId = z.infer<typeof SessionId>;

/** A tenant's token, as it stands in subjects. */
export const TenantId = id('tenant').brand<'TenantId'>();
/** See {@link TenantId}. */
export type TenantId = z.infer<typeof TenantId>;

/** A command's identity within its session. Publishers may choose it; the store's position is used otherwise. */
export const CommandId = id('command id').brand<'CommandId'>();
/** See {@link CommandId}. */
export type CommandId = z.infer<typeof CommandId>;

/** The identity of a command whose sender chose none: its place in one incarnation of the command stream. */
export function positionalCommandId(
  incarnation: { readonly stream: string; readonly created: string },
  seq: number,
): CommandId {
  return CommandId.parse(`${incarnation.stream}-${incarnation.created}-${seq}`);
}

/** The tenant of a bus that has not been divided among tenants. */
export const DEFAULT_TENANT = TenantId.parse('default');

/** A session and the tenant that it belongs to: what every port needs to find its data. */
export interface SessionRef {
  readonly tenant: TenantId;
  readonly sessionId: SessionId;
}

/**
 * Checks both tokens of a session reference.
 * @throws ZodError naming the token that is wrong.
 */
export function sessionRef(sessionId: string, tenant: string = DEFAULT_TENANT): SessionRef {
  return { tenant: TenantId.parse(tenant), sessionId: SessionId.parse(sessionId) };
}
