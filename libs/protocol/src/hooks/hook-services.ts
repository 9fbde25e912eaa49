/** Hook services on the bus: announcements, and the arguments and answers of questions. */
import * as z from 'zod';
import { Message } from '../journal/messages.ts';
import { BOUNDS } from '../wire/bounds.ts';
import { listOf } from '../wire/containers.ts';
import { WrapperObject } from '../wire/json.ts';
import { HookPoint } from './hook-points.ts';
import { HookTable, isOfPersona } from './hook-registrations.ts';

/** The name of a service. Generated ids of its hooks start with it. */
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

/** The arguments of a question to a hook. */
export const HookArgs = z.strictObject({
  point: HookPoint,
  payload: WrapperObject,
  /** Time limit of the answer. */
  timeout_ms: z.number().int().min(1).max(BOUNDS.hookTimeoutMaxMs),
  /** The inbox from which the instance fetches long lists, see `WorkFetch`. */
  fetch: z.string().min(1).max(256),
  /** The question has messages to fetch, at `transform_context`. */
  shows_messages: z.literal(true).optional(),
});
export type HookArgs = z.infer<typeof HookArgs>;

/** Maximum of messages in an answer `shaped`. An index has few bytes, so a bound on bytes would allow too many. */
export const SHAPED_MESSAGES_MAX = 65_536;

/** The answer of a hook. */
export const ServedHookAnswer = z.discriminatedUnion('status', [
  z.strictObject({ status: z.literal('returned'), raw: z.unknown().optional() }),
  /** `{messages}` of `transform_context`: messages of the request by their index, each index once; new ones in full. */
  z.strictObject({
    status: z.literal('shaped'),
    messages: listOf(z.union([z.number().int().nonnegative(), Message])).max(SHAPED_MESSAGES_MAX),
  }),
  z.strictObject({
    status: z.literal('failed'),
    code: z.enum(['hook_threw', 'hook_unavailable', 'return_unreadable', 'verdict_invalid']),
    message: z.string().max(2_048),
  }),
]);
export type ServedHookAnswer = z.infer<typeof ServedHookAnswer>;
