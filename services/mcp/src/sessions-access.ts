/** Access of the tools to sessions. */
import type { BodyInput, Client } from '@coxswain/client';
import type { ListedPersona, StartWanted } from './tools/tool-inputs.ts';

/** Scopes of an MCP client. They have the names of a gateway's scopes. */
export const MCP_SCOPES = ['read', 'run', 'steer', 'approve'] as const;
/** One scope of an MCP client. */
export type McpScope = (typeof MCP_SCOPES)[number];

/** Access to sessions, with settings that only the operator of the server knows. */
export interface SessionsAccess {
  /**
   * The current client. A bus may end while the server runs; this function then waits for the next one.
   * @throws an error with a code if no client is available in time; the signal's reason.
   */
  client(signal: AbortSignal): Promise<Client>;
  /**
   * The body of a start. It resolves personas by name, and models by paths of the operator.
   * @throws errors with a code.
   */
  startBody(wanted: StartWanted): Promise<BodyInput<'start'>>;
  /**
   * Personas that a start may name.
   * @throws errors with a code.
   */
  personas(client: Client): Promise<readonly ListedPersona[]>;
  /** The actor of commands, from the client's own name. Undefined leaves it to the connection. */
  actorOf(clientName: string | undefined): string | undefined;
}
