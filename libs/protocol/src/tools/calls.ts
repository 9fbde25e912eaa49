/** Tools and their calls. */
import * as z from 'zod';
import { BOUNDS } from '../wire/bounds.ts';
import { JsonObject } from '../wire/json.ts';

/** The outcome of a call. Every call ends exactly once. */
export const CallStatus = z.enum(['ok', 'error', 'denied', 'skipped', 'cancelled', 'interrupted', 'aborted']);
export type CallStatus = z.infer<typeof CallStatus>;

/** The traits of a tool that a session needs to handle its calls. */
export const ToolTraits = z.strictObject({
  /** A call with an unknown outcome may run again: the same key has the same effect. */
  idempotent: z.boolean(),
  /** Its outcome arrives as a durable command instead of a reply. */
  long_running: z.boolean(),
  /** A batch with such a call runs one call after another. */
  sequential: z.boolean(),
  /** A batch ends the run if each of its calls that ran is of such a tool and ended with `ok`. */
  terminates: z.boolean(),
});
export type ToolTraits = z.infer<typeof ToolTraits>;

/** The traits of a tool that declares none: not idempotent, quick, parallel, and the run continues after it. */
export const DEFAULT_TRAITS: ToolTraits = {
  idempotent: false,
  long_running: false,
  sequential: false,
  terminates: false,
};

/**
 * The reason of an abort when a host releases a session with a running call. Work in the host's process ends with it;
 * work elsewhere continues for the session's next host.
 */
export const SESSION_LEFT: Error = Object.assign(new Error('the host has released the session'), {
  name: 'AbortError',
});

/** Maximum size of a result's text in its record, in bytes. */
export const MaxOutput = z.number().int().min(BOUNDS.toolResultInlineMinBytes).max(BOUNDS.toolResultInlineMaxBytes);

/** Tool names that every provider accepts and a subject can contain. */
export const TOOL_NAME_PATTERN = /^[A-Za-z0-9_-]{1,128}$/;

/** A tool as a session and its model know it. `input_schema` is JSON Schema; `source` says who runs it. */
export const ToolDefinition = z.strictObject({
  name: z.string().regex(TOOL_NAME_PATTERN, { error: 'must have 1 to 128 characters of A-Z a-z 0-9 _ -' }),
  description: z.string().max(16_384),
  input_schema: JsonObject,
  source: z.string().min(1).max(256),
  traits: ToolTraits,
  /**
   * Whether a person must approve its calls, even if the permission rules allow them: `always`, or by the tool's answer
   * for each call. Absent: the rules decide.
   */
  needs_approval: z.enum(['always', 'by_call']).optional(),
  /** Maximum size of a result's text in the record and for the model, in bytes. Default: `toolResultInlineMaxBytes`. */
  max_output: MaxOutput.optional(),
});
export type ToolDefinition = z.infer<typeof ToolDefinition>;
