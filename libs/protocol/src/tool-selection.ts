/** Which tools a persona, a start or a step has. */
import * as z from 'zod';
import { TOOL_NAME_PATTERN } from './calls.ts';
import { Glob } from './patterns.ts';

/** Which tools a persona has: built-ins and MCP tools whose name an `allow` glob matches and no `deny` glob does. */
export const ToolSelection = z.strictObject({
  allow: z.array(Glob).max(256).default(['*']),
  deny: z.array(Glob).max(256).default([]),
});
/** See {@link ToolSelection}. */
export type ToolSelection = z.infer<typeof ToolSelection>;

/** The same as people write it: globs alone are what is allowed. */
export const WrittenToolSelection = z.union([
  z
    .array(Glob)
    .max(256)
    .transform((allow) => ({ allow, deny: [] as string[] })),
  ToolSelection,
]);

/** Built-in tools that somebody else may carry out in the host's place. */
export const STAND_IN_TOOLS = ['read_file', 'write_file', 'append_file', 'edit_file', 'run_command'] as const;

/**
 * Which tools of the bus carry out built-in ones for a session, as long as they are served: an editor's, that knows what is not
 * saved yet. Only the start can say so: whoever stands in passes under the rules of what it stands in for.
 */
export const StandIns = z.partialRecord(z.enum(STAND_IN_TOOLS), z.string().regex(TOOL_NAME_PATTERN));
/** See {@link StandIns}. */
export type StandIns = z.infer<typeof StandIns>;
