/** Principals and their permissions. */
import * as z from 'zod';

/** The permissions of tokens. `admin` includes all others. */
export const SCOPES = ['read', 'run', 'steer', 'approve', 'admin'] as const;
/** One permission of a token. */
export const Scope = z.enum(SCOPES);
export type Scope = z.infer<typeof Scope>;

/** The meaning of each scope, as printed in the reference. */
export const SCOPE_MEANINGS: Readonly<Record<Scope, string>> = {
  read: 'Read sessions: lists, states, journals, live events, trees, exports. Read metrics.',
  run: 'Start, prompt, fork, cancel, suspend, resume and signal sessions.',
  steer:
    'Send messages to sessions: steer, remind, follow up. Revoke and replace queued messages. Cancel single calls.',
  approve: 'Approve and deny pending tool calls.',
  admin: 'All of these rights, and delete sessions.',
};

/** An authenticated client. */
export interface Principal {
  /** Recorded as the actor of commands. */
  readonly name: string;
  readonly tenant: string;
  readonly scopes: ReadonlySet<Scope>;
  /** Expiry of the token, in milliseconds since the epoch; null if it does not expire. */
  readonly expiresAt: number | null;
}

/** Whether a principal has a scope, directly or through `admin`. */
export function isAllowed({ scopes }: Principal, scope: Scope): boolean {
  return scopes.has(scope) || scopes.has('admin');
}

/** Authenticates clients by their tokens. */
export interface Authenticator {
  /**
   * The principal of a token; null for an unknown, expired or invalid one.
   * @throws Problem `auth_unavailable` (503) if the token cannot be checked at the moment.
   */
  authenticate(token: string): Promise<Principal | null>;
}

/** Tries authenticators in order and returns the first principal. */
export function firstAuthenticator(authenticators: readonly Authenticator[]): Authenticator {
  return {
    async authenticate(token) {
      for (const one of authenticators) {
        const principal = await one.authenticate(token);
        if (principal) return principal;
      }
      return null;
    },
  };
}
