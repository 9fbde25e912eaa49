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

/** Built-in tools that another program, such as an editor, may replace. */
export const STAND_IN_TOOLS = ['read_file', 'write_file', 'append_file', 'edit_file', 'run_command'] as const;

/**
 * Tools of the bus that replace built-in ones in a session while they are served, such as those of an editor with
 * unsaved files. Only the start can set them: a replacement is subject to the permission rules of the replaced tool.
 */
export const StandIns = z.partialRecord(z.enum(STAND_IN_TOOLS), z.string().regex(TOOL_NAME_PATTERN));
/** See {@link StandIns}. */
export type StandIns = z.infer<typeof StandIns>;
