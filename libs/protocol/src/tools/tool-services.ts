/** Tools on the bus: their names, announcements and versions. */
import * as z from 'zod';
import { BUILT_IN_RULES } from '../personas/permissions.ts';
import { canonicalJson } from '../wire/canonical-json.ts';
import { ID_PATTERN } from '../wire/ids.ts';
import { fnv1a32 } from '../wire/subjects.ts';
import { TOOL_NAME_PATTERN, ToolDefinition } from './calls.ts';

// Names of a host's own tools. The built-in permission rules allow some of them, and would also allow a bus tool of the
// same name.
const HOSTS_OWN = new Set([
  ...BUILT_IN_RULES.map(({ tool }) => tool),
  'fetch_url',
  'delegate',
  'handoff',
  'send_message',
]);

/** The name of a bus tool: not the name of a tool of the host or of an MCP server. */
export const BusToolName = z
  .string()
  .regex(TOOL_NAME_PATTERN, { error: 'a tool is named with 1 to 128 characters of A-Z a-z 0-9 _ -' })
  .refine((name) => !name.includes('__'), { error: 'a name with __ is one of an MCP server’s tool' })
  .refine((name) => !HOSTS_OWN.has(name), { error: 'a host has a tool of this name itself' });

/** The announcement of a tool. The registry keeps it until another announcement of the tool, or its removal. */
export const ToolAnnouncement = z.strictObject({
  v: z.literal(1),
  /** Time of the announcement. Repeated announcements of the same definition keep the first time. */
  since: z.iso.datetime(),
  ...ToolDefinition.omit({ source: true, max_output: true }).shape,
  name: BusToolName,
  /**
   * Only this session has the tool, under the name of the built-in tool that it replaces (`stand_ins` of the start).
   */
  for_session: z.string().regex(ID_PATTERN).optional(),
});
export type ToolAnnouncement = z.infer<typeof ToolAnnouncement>;

/**
 * Distinguishes versions of a tool, as eight hexadecimal digits. It is not a security feature: digests can collide.
 * `for_session` does not count.
 * @param announced the announcement of an instance or of the registry.
 */
export function toolDigest({
  name,
  description,
  input_schema,
  traits,
  needs_approval,
}: Omit<ToolAnnouncement, 'v' | 'since'>): string {
  const version = { name, description, input_schema, traits, ...(needs_approval ? { needs_approval } : {}) };
  return fnv1a32(canonicalJson(version)).toString(16).padStart(8, '0');
}
