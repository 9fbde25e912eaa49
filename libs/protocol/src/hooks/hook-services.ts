/**
 * Hook services on the bus: announcements, heartbeats, questions and answers.
 */
import * as z from 'zod';
import { Message } from '../journal/messages.ts';
import { BOUNDS } from '../wire/bounds.ts';
import { ID_PATTERN, SessionId } from '../wire/ids.ts';
import { JsonObject } from '../wire/json.ts';
import { HookPoint } from './hook-points.ts';
import { HookId, HookTable, isOfPersona } from './hook-registrations.ts';

/** Heartbeat interval of an instance, and the time after which it is declared dead. */
export const HOOK_LIVENESS = { beatMs: 300, ttlMs: 3_000 } as const;

/** The queue group of a hook service: its instances share the questions. */
export const HOOK_QUEUE_GROUP = 'cox-hooks';

/** The name of a service. The ids of its hooks start with it. */
export const HookServiceName = z
  .string()
  .regex(/^[A-Za-z0-9_-]{1,32}$/, { error: 'a hook service is named with 1 to 32 characters of A-Z a-z 0-9 _ -' });

/** The announcement of a service. The registry keeps it until another announcement or an explicit removal. */
export const HookAnnouncement = z.strictObject({
  v: z.literal(1),
  service: HookServiceName,
  /** Time of the first announcement: for equal priorities the older service is called first. */
  since: z.iso.datetime(),
  registrations: HookTable.refine((table) => !table.some(isOfPersona), {
    error: 'hooks of personas are not announced',
  }),
});
export type HookAnnouncement = z.infer<typeof HookAnnouncement>;

/** The heartbeat of an instance; `leaving` is the last one. */
export const HookBeat = z.strictObject({ v: z.literal(1), state: z.enum(['serving', 'leaving']) });
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
  /** Time limit of the answer. */
  timeout_ms: z.number().int().min(1).max(BOUNDS.hookTimeoutMaxMs),
  /** The subject for callbacks: to fetch long lists, and to send feedback to the model. */
  callback: z.string().min(1).max(256),
  /** The question has messages to fetch, at `transform_context`. */
  shows_messages: z.literal(true).optional(),
});
export type HookAsked = z.infer<typeof HookAsked>;

/** The answer to {@link HookAsked}. It repeats the identity of the question; other answers are ignored. */
export const HookAnswered = z.discriminatedUnion('status', [
  z.strictObject({ ...asked, status: z.literal('returned'), raw: z.unknown().optional() }),
  /** `{messages}` of `transform_context`: shown messages by their index, new ones in full. */
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
export type HookAnswered = z.infer<typeof HookAnswered>;

/**
 * A request of a hook service to the host, while the host waits. `transcript` and `messages` fetch the UTF-8 JSON of a
 * list from `offset` on: the body of the reply is a part of it, and its header `Cox-Total` is the size of all of it.
 * `taken` names the instance that took the question, so that another one can be asked if it dies.
 */
export const HookCallback = z.discriminatedUnion('want', [
  z.strictObject({ want: z.literal('transcript'), offset: z.number().int().nonnegative() }),
  z.strictObject({ want: z.literal('messages'), offset: z.number().int().nonnegative() }),
  z.strictObject({ want: z.literal('feedback'), text: z.string().max(8_192) }),
  z.strictObject({ want: z.literal('taken'), instance: z.string().regex(ID_PATTERN) }),
]);
export type HookCallback = z.infer<typeof HookCallback>;

/** Maximum size of an answer without its return value, bytes. */
export const HOOK_ENVELOPE_MAX_BYTES = 4_096;
/** Size of one fetched part of a list, bytes. */
export const HOOK_PART_BYTES = 256 * 1024;
