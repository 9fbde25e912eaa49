/**
 * Hooks of a persona, as its file or its code declares them. They are a part of its definition: sessions pin them with it, and
 * they hold in its sessions only.
 */
import * as z from 'zod';
import { BOUNDS } from '../wire/bounds.ts';
import { REGISTRATION_FIELDS } from './hook-registrations.ts';

const { id, pattern, step, priority, on_error, deny, max_output, returns } = REGISTRATION_FIELDS;

/** Whose code is asked: in a file `./policy.ts#name`; of a persona in code, where in its definition it stands. */
const Handler = z.string().trim().min(1).max(1_024);

const settings = {
  /** Of the persona's own; sessions know it as `<persona>:<id>`. By default the event and the place in the list. */
  id: id.optional(),
  pattern: pattern.unwrap().optional(),
  timeout_ms: z.number().int().min(1).max(BOUNDS.personaHookTimeoutMaxMs).optional(),
  on_error: on_error.unwrap().optional(),
  returns,
  handler: Handler.optional(),
};

/** One hook of a persona. Its members are those of a manifest; `readPersonaHooks` validates their meaning. */
export const PersonaHook = z.strictObject({
  /** A hook point, in either spelling; a budget's may say its percentage. */
  event: z.string().max(64),
  ...settings,
  step,
  kinds: z.union([z.string(), z.array(z.string()).max(32)]).optional(),
  priority: priority.unwrap().optional(),
  deny,
  max_output,
});
/** See {@link PersonaHook}. */
export type PersonaHook = z.infer<typeof PersonaHook>;

/** The hooks of a persona, in order. */
export const PersonaHooks = z.array(PersonaHook).max(BOUNDS.personaHooksMax);

/** The hook of the end of each run of a persona's session: a handler, a handler with settings, or a constant return. */
export const OnFinish = z.union([Handler, z.strictObject(settings)]);
/** See {@link OnFinish}. */
export type OnFinish = z.infer<typeof OnFinish>;
