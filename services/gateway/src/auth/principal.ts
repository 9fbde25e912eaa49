/** Who a request is from, and what it may. */
import * as z from 'zod';

/** What a token may be allowed. `admin` is allowed everything. */
export const SCOPES = ['read', 'run', 'steer', 'approve', 'admin'] as const;
/** One permission of a token. */
export const Scope = z.enum(SCOPES);
export type Scope = z.infer<typeof Scope>;

/** What each scope is for, as the reference says it. */
export const SCOPE_MEANINGS: Readonly<Record<Scope, string>> = {
  read: 'Read sessions: lists, states, journals, live events, trees, exports. Read metrics.',
  run: 'Start, prompt, fork, cancel, suspend, resume and signal sessions.',
  steer:
    'Send messages to sessions: steer, remind, follow up. Revoke and replace queued messages. Cancel single calls.',
  approve: 'Approve and deny pending tool calls.',
  admin: 'All of these rights, and delete sessions.',
};

/** Somebody who was let in. */
export interface Principal {
  /** Recorded as the actor of commands. */
  readonly name: string;
  readonly tenant: string;
  readonly scopes: ReadonlySet<Scope>;
  /** When what let them in is over, milliseconds since the epoch; null where it is not. */
  readonly expiresAt: number | null;
}

/** Whether somebody may do what a scope is for. */
export function isAllowed({ scopes }: Principal, scope: Scope): boolean {
  return scopes.has(scope) || scopes.has('admin');
}

/** Lets people in by what they show. */
export interface Authenticator {
  /**
   * Who holds this token, or null where nobody does.
   * @throws Problem `auth_unavailable` where it cannot be told at the moment.
   */
  authenticate(token: string): Promise<Principal | null>;
}

/** The first that knows the token. */
export function anyOf(authenticators: readonly Authenticator[]): Authenticator {
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
