/** Which tools a persona, a start or a step has. */
import { z } from 'zod';
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
