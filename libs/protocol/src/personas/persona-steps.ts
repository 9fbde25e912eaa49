/**
 * The progress of a model step of a served persona: the input of the host, and the members of the events.
 */
import * as z from 'zod';

const effectId = z.string();
const persona = z.string();
const version = z.string();
/** `unserved`: no instance serves the version. `paused`: the persona is paused. */
const why = z.enum(['unserved', 'paused']);

/** The progress of a model step. Made by hosts only. */
export const PersonaStepInput = z.discriminatedUnion('state', [
  z.strictObject({
    type: z.literal('persona_step'),
    effect_id: effectId,
    state: z.literal('waits'),
    persona,
    version,
    why,
    reason: z.string().max(2_048).optional(),
    /** Maximum of the wait; absent for no limit. */
    wait_ms: z.number().int().positive().optional(),
  }),
  /** The wait has ended. */
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
export type PersonaStepInput = z.infer<typeof PersonaStepInput>;

/** The members of the events about this progress, without `type`. */
export const PERSONA_STEP_EVENTS = {
  waiting_for_persona: {
    effect_id: effectId,
    persona,
    version,
    why,
    /** The reason of a pause. */
    reason: z.string().optional(),
    /** Maximum of the wait; absent for no limit. After it: `afterPersonaWaitExpiry` (persona-waits.ts in libs/turn). */
    wait_ms: z.number().int().positive().optional(),
  },
  persona_wait_ended: { effect_id: effectId, persona, version, why },
  persona_step_lost: {
    effect_id: effectId,
    persona,
    version,
    /** The instance that ran the model step. */
    instance: z.string(),
    cause: z.enum(['gone', 'handed_back']),
    /** Number of lost attempts so far. */
    lost: z.number().int().positive(),
  },
} as const;
