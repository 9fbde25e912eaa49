/** Tools and their calls. */
import * as z from 'zod';
import { BOUNDS } from '../wire/bounds.ts';
import { JsonObject } from '../wire/json.ts';

/** How a call ended. Every call ends exactly once. */
export const CallStatus = z.enum(['ok', 'error', 'denied', 'skipped', 'cancelled', 'interrupted', 'aborted']);
/** See {@link CallStatus}. */
export type CallStatus = z.infer<typeof CallStatus>;

/** What a session must know of a tool to decide about its calls. */
export const ToolTraits = z.strictObject({
  /** May run again when it is not known whether it ran: same key, same effect. */
  idempotent: z.boolean(),
  /** Its outcome comes back as a durable command, not as a reply. */
  long_running: z.boolean(),
  /** A batch that holds it runs one call after another. */
  sequential: z.boolean(),
  /** A batch in which every call that ran terminates without error ends the run. */
  terminates: z.boolean(),
});
/** See {@link ToolTraits}. */
export type ToolTraits = z.infer<typeof ToolTraits>;

/** A tool that says nothing about itself: not repeatable, quick, parallel, and the run goes on after it. */
export const DEFAULT_TRAITS: ToolTraits = {
  idempotent: false,
  long_running: false,
  sequential: false,
  terminates: false,
};

/**
 * The reason of an abort where a host leaves a session whose call goes on: what runs in the host's process ends with it,
 * what runs elsewhere is left to the session's next host.
 */
export const SESSION_LEFT: Error = Object.assign(new Error('the host has released the session'), {
  name: 'AbortError',
});

/** How much of a result's text stays in its record, in bytes. */
export const MaxOutput = z.number().int().min(BOUNDS.toolResultInlineMinBytes).max(BOUNDS.toolResultInlineMaxBytes);

/** What a tool may be called: what every provider takes, and what can stand in a subject. */
export const TOOL_NAME_PATTERN = /^[A-Za-z0-9_-]{1,128}$/;

/** A tool as a model is shown it. `input_schema` is JSON Schema; `source` says who runs it. */
export const ToolDefinition = z.strictObject({
  name: z.string().regex(TOOL_NAME_PATTERN, { error: 'must have 1 to 128 characters of A-Z a-z 0-9 _ -' }),
  description: z.string().max(16_384),
  input_schema: JsonObject,
  source: z.string().min(1).max(256),
  traits: ToolTraits,
  /**
   * Whether a person must approve its calls, whatever the permission rules allow: each call, or those for which the tool itself answers
   * so. Absent: the rules decide.
   */
  needs_approval: z.enum(['always', 'by_call']).optional(),
  /** How much of a result's text stays in the record and is shown to the model, in bytes; the bound of a result if not given. */
  max_output: MaxOutput.optional(),
});
/** See {@link ToolDefinition}. */
export type ToolDefinition = z.infer<typeof ToolDefinition>;
