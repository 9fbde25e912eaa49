/**
 * The selection of tools of a persona, a start or a step.
 */
import * as z from 'zod';
import { listOf } from '../wire/containers.ts';
import { TOOL_NAME_PATTERN } from './calls.ts';
import { Glob } from './patterns.ts';

/** The selected tools: those of the session with a name that an `allow` glob matches and no `deny` glob. */
export const ToolSelection = z.strictObject({
  allow: listOf(Glob).max(256).default(['*']),
  deny: listOf(Glob).max(256).default([]),
});
export type ToolSelection = z.infer<typeof ToolSelection>;

/** A tool selection as people write it: also a list of globs, which means `allow`. */
export const WrittenToolSelection = z.union([
  listOf(Glob)
    .max(256)
    .transform((allow) => ({ allow, deny: [] as string[] })),
  ToolSelection,
]);

/** Built-in tools that another program, such as an editor, may replace. */
export const STAND_IN_TOOLS = ['read_file', 'write_file', 'append_file', 'edit_file', 'run_command'] as const;

/**
 * Bus tools that replace built-in ones in a session while they are served, such as those of an editor with unsaved
 * files. Only the start can set them. The permission rules of the replaced tool apply to its replacement.
 */
export const StandIns = z.partialRecord(z.enum(STAND_IN_TOOLS), z.string().regex(TOOL_NAME_PATTERN));
export type StandIns = z.infer<typeof StandIns>;
