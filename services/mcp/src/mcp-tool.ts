/** Definitions of the server's tools: schemas, scope and implementation. */
import type { Client } from '@coxswain/client';
import type { z } from 'zod';
import type { McpScope, SessionsAccess } from './sessions-access.ts';

/** The context of a tool call. */
export interface ToolUse {
  readonly client: Client;
  readonly access: SessionsAccess;
  /** The scopes of the client. */
  readonly scopes: ReadonlySet<McpScope>;
  /** The actor of commands; undefined leaves it to the connection. */
  readonly actor: string | undefined;
  /** Aborts when the client cancels the call or disconnects. */
  readonly signal: AbortSignal;
  /** Sends a progress notification, if the client asked for progress. */
  progress(message: string): void;
}

/** A tool as it is written. */
export interface ToolDefinition<I extends z.ZodObject, O extends z.ZodObject> {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly scope: McpScope;
  readonly input: I;
  readonly output: O;
  /** Hints for clients. Tools with the scope `read` are also marked as read-only. */
  readonly destructive?: boolean;
  readonly idempotent?: boolean;
  run(input: z.output<I>, use: ToolUse): Promise<z.output<O>>;
}

/** A tool as the server calls it. */
export interface McpTool extends Omit<ToolDefinition<z.ZodObject, z.ZodObject>, 'run'> {
  run(input: unknown, use: ToolUse): Promise<object>;
}

/** Defines a tool whose input type comes from its schema. */
export function mcpTool<I extends z.ZodObject, O extends z.ZodObject>(definition: ToolDefinition<I, O>): McpTool {
  // The server validates the input with this schema before it runs the tool.
  return { ...definition, run: (input, use) => definition.run(input as z.output<I>, use) };
}
