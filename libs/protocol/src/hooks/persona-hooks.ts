/**
 * Hooks of a persona, as declared in its file or code. They are a part of its definition: sessions pin them, and they
 * apply to its own sessions only.
 */
import * as z from 'zod';
import { BOUNDS } from '../wire/bounds.ts';
import { listOf } from '../wire/containers.ts';
import { REGISTRATION_FIELDS } from './hook-registrations.ts';

const { id, pattern, step, priority, on_error, deny, max_output, returns } = REGISTRATION_FIELDS;

/** The handler: `./policy.ts#name` in a file; in code, its path in the definition. */
const Handler = z.string().trim().min(1).max(1_024);

const settings = {
  /** Unique in the persona at its point. Sessions use `<persona>:<id>`. Default: the event and the position, from 1. */
  id: id.optional(),
  pattern: pattern.unwrap().optional(),
  timeout_ms: z.number().int().min(1).max(BOUNDS.personaHookTimeoutMaxMs).optional(),
  on_error: on_error.unwrap().optional(),
  returns,
  handler: Handler.optional(),
};

/** One hook of a persona, with the members of a manifest. `readPersonaHooks` validates them. */
export const PersonaHook = z.strictObject({
  /** A hook point in either spelling; a budget's point may contain its percentage. */
  event: z.string().max(64),
  ...settings,
  step,
  kinds: z.union([z.string(), listOf(z.string()).max(32)]).optional(),
  priority: priority.unwrap().optional(),
  deny,
  max_output,
});
export type PersonaHook = z.infer<typeof PersonaHook>;

/** The hooks of a persona, in order. */
export const PersonaHooks = listOf(PersonaHook).max(BOUNDS.personaHooksMax);

/** The hook at the end of each run: a handler, a handler with settings, or a constant return value. */
export const OnFinish = z.union([Handler, z.strictObject(settings)]);
export type OnFinish = z.infer<typeof OnFinish>;
