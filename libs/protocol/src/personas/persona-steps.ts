/** What a step of a served persona goes through before it ends: the input that a host makes of it, and its events. */
import * as z from 'zod';

const effectId = z.string();
const persona = z.string();
const version = z.string();
/** `unserved`: no instance serves the version. `paused`: somebody has paused the persona. */
const why = z.enum(['unserved', 'paused']);

/** A host says how a step fares. Made by hosts only. */
export const PersonaStepInput = z.discriminatedUnion('state', [
  z.strictObject({
    type: z.literal('persona_step'),
    effect_id: effectId,
    state: z.literal('waits'),
    persona,
    version,
    why,
    reason: z.string().max(2_048).optional(),
    /** How long it may wait; without it, as long as it takes. */
    wait_ms: z.number().int().positive().optional(),
  }),
  /** What it has waited for is there. */
  z.strictObject({ type: z.literal('persona_step'), effect_id: effectId, state: z.literal('goes_on') }),
  z.strictObject({
    type: z.literal('persona_step'),
    effect_id: effectId,
    state: z.literal('lost'),
    persona,
    version,
    instance: z.string(),
    cause: z.enum(['gone', 'handed_back']),
  }),
]);
/** See {@link PersonaStepInput}. */
export type PersonaStepInput = z.infer<typeof PersonaStepInput>;

/** The members of their events. */
export const PERSONA_STEP_EVENTS = {
  waiting_for_persona: {
    effect_id: effectId,
    persona,
    version,
    why,
    /** The reason of a pause. */
    reason: z.string().optional(),
    /** How long it may wait before the run fails; without it, as long as it takes. */
    wait_ms: z.number().int().positive().optional(),
  },
  persona_wait_ended: { effect_id: effectId, persona, version, why },
  persona_step_lost: {
    effect_id: effectId,
    persona,
    version,
    /** Who ran it. */
    instance: z.string(),
    cause: z.enum(['gone', 'handed_back']),
    /** How many tries were lost by now. */
    lost: z.number().int().positive(),
  },
} as const;
