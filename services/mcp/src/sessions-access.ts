/** What the tools reach sessions by, and what they may do there. */
import type { BodyInput, Client } from '@coxswain/client';
import type { ListedPersona, StartWanted } from './tools/tool-inputs.ts';

/** What a client of the server may be allowed, in the words of a gateway's tokens. */
export const MCP_SCOPES = ['read', 'run', 'steer', 'approve'] as const;
/** One scope of a session token. */
export type McpScope = (typeof MCP_SCOPES)[number];

/** The way to sessions, and what only whoever runs the server knows. */
export interface SessionsAccess {
  /**
   * The client at the moment. A bus may end while the server lives; then the next one is waited for.
   * @throws an error with a code where there is none in time, or the signal's reason.
   */
  client(signal: AbortSignal): Promise<Client>;
  /** The body of a start: personas by name, models by the paths of whoever runs the server. @throws errors with a code. */
  startBody(wanted: StartWanted): Promise<BodyInput<'start'>>;
  /** Personas that a start may name. @throws errors with a code. */
  personas(client: Client): Promise<readonly ListedPersona[]>;
  /** Whom commands name as their actor, by the client's own name; undefined leaves that to the connection. */
  actorOf(clientName: string | undefined): string | undefined;
}
