/** Hook services on the bus: what they announce, how they say that they live, and how they are asked and answer. */
import * as z from 'zod';
import { Message } from '../journal/messages.ts';
import { BOUNDS } from '../wire/bounds.ts';
import { ID_PATTERN, SessionId } from '../wire/ids.ts';
import { JsonObject } from '../wire/json.ts';
import { HookPoint } from './hook-points.ts';
import { HookId, HookTable, isOfPersona } from './hook-registrations.ts';

/** How often an instance says that it lives, and how long it is believed. */
export const HOOK_LIVENESS = { beatMs: 300, ttlMs: 3_000 } as const;

/** The queue group in which instances of a hook service share its questions. */
export const HOOK_QUEUE_GROUP = 'cox-hooks';

/** A service's name, of which its hooks' ids are made. */
export const HookServiceName = z
  .string()
  .regex(/^[A-Za-z0-9_-]{1,32}$/, { error: 'a hook service is named with 1 to 32 characters of A-Z a-z 0-9 _ -' });

/** The announcement of a service. The registry keeps it until another announcement or an explicit removal. */
export const HookAnnouncement = z.strictObject({
  v: z.literal(1),
  service: HookServiceName,
  /** When it was first announced: among equal priorities the older service is asked first. */
  since: z.iso.datetime(),
  registrations: HookTable.refine((table) => !table.some(isOfPersona), {
    error: 'hooks of personas are not announced',
  }),
});
/** See {@link HookAnnouncement}. */
export type HookAnnouncement = z.infer<typeof HookAnnouncement>;

/** What an instance says of itself, again and again; `leaving` is the last of it. */
export const HookBeat = z.strictObject({ v: z.literal(1), state: z.enum(['serving', 'leaving']) });
/** See {@link HookBeat}. */
export type HookBeat = z.infer<typeof HookBeat>;

const asked = {
  v: z.literal(1),
  hook: HookId,
  session_id: SessionId,
  effect_id: z.string().min(1).max(64),
};

/** One question to one registration. */
export const HookAsked = z.strictObject({
  ...asked,
  point: HookPoint,
  payload: JsonObject,
  /** How long the session waits. */
  timeout_ms: z.number().int().min(1).max(BOUNDS.hookTimeoutMaxMs),
  /** Where the handler fetches what may be long, and tells the model something. */
  callback: z.string().min(1).max(256),
  /** There are messages to fetch: `transform_context`. */
  shows_messages: z.literal(true).optional(),
});
/** See {@link HookAsked}. */
export type HookAsked = z.infer<typeof HookAsked>;

/** The answer to {@link HookAsked}. It names what it answers; one that names anything else is none. */
export const HookAnswered = z.discriminatedUnion('status', [
  z.strictObject({ ...asked, status: z.literal('returned'), raw: z.unknown().optional() }),
  /** `{messages}` of `transform_context`: those that were shown by their places, the others in full. */
  z.strictObject({
    ...asked,
    status: z.literal('shaped'),
    messages: z.array(z.union([z.number().int().nonnegative(), Message])),
  }),
  z.strictObject({
    ...asked,
    status: z.literal('failed'),
    code: z.enum(['hook_threw', 'hook_unavailable', 'return_unreadable', 'verdict_invalid']),
    message: z.string().max(2_048),
  }),
]);
/** See {@link HookAnswered}. */
export type HookAnswered = z.infer<typeof HookAnswered>;

/**
 * What a handler's service may want of the host while the host waits. `transcript` and `messages` are requests for the
 * UTF-8 JSON of a list from `offset` on: the answer's body is a part of it, its header `Cox-Total` says how long all is.
 * `taken` says who has the question, so that another one can be asked where that one has gone.
 */
export const HookCallback = z.discriminatedUnion('want', [
  z.strictObject({ want: z.literal('transcript'), offset: z.number().int().nonnegative() }),
  z.strictObject({ want: z.literal('messages'), offset: z.number().int().nonnegative() }),
  z.strictObject({ want: z.literal('feedback'), text: z.string().max(8_192) }),
  z.strictObject({ want: z.literal('taken'), instance: z.string().regex(ID_PATTERN) }),
]);
/** See {@link HookCallback}. */
export type HookCallback = z.infer<typeof HookCallback>;

/** Maximum size of an answer without its return, bytes. */
export const HOOK_ENVELOPE_MAX_BYTES = 4_096;
/** One part of a list that is fetched. */
export const HOOK_PART_BYTES = 256 * 1024;
