/** What a tool of the server is: its schemas, what it needs, and what it does. */
import type { Client } from '@coxswain/client';
import type { z } from 'zod';
import type { McpScope, SessionsAccess } from './sessions-access.ts';

/** What a tool is handed beside its input. */
export interface ToolUse {
  readonly client: Client;
  readonly access: SessionsAccess;
  /** What the client may do. */
  readonly scopes: ReadonlySet<McpScope>;
  /** Whom commands name. */
  readonly actor: string | undefined;
  /** Aborts when the client takes the call back, or goes away. */
  readonly signal: AbortSignal;
  /** Tells the client how a wait goes on; does nothing where it has not asked for that. */
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
  /** What a client may be told of it; `readOnly` goes with the scope `read`. */
  readonly destructive?: boolean;
  readonly idempotent?: boolean;
  run(input: z.output<I>, use: ToolUse): Promise<z.output<O>>;
}

/** A tool as the server has it. */
export interface McpTool extends Omit<ToolDefinition<z.ZodObject, z.ZodObject>, 'run'> {
  run(input: unknown, use: ToolUse): Promise<object>;
}

/** A tool whose input has the type that its schema says. */
export function mcpTool<I extends z.ZodObject, O extends z.ZodObject>(definition: ToolDefinition<I, O>): McpTool {
  // The server parses by this very schema before it runs the tool.
  return { ...definition, run: (input, use) => definition.run(input as z.output<I>, use) };
}
