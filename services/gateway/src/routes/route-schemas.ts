/** What routes share: the parts of addresses, what is waited for, what is answered. */
import type { JournalStart } from '@coxswain/client';
import {
  CallCancellation,
  COMMAND_BODIES,
  CommandId,
  httpFieldOf,
  JsonObject,
  Receipt,
  SessionId,
  type Verb,
} from '@coxswain/protocol';
import * as z from 'zod';
import { GATEWAY_BOUNDS } from '../gateway-bounds.ts';
import { ProblemDocument } from '../problem.ts';

/** The session that an address names. */
export const OfSession = z.strictObject({ session_id: SessionId });
/** A call of a session. */
export const OfCall = z.strictObject({ session_id: SessionId, call_id: z.string().min(1).max(256) });
/** Something that waits in a session. */
export const OfPending = z.strictObject({
  session_id: SessionId,
  target_command_id: z
    .union([CommandId, z.string().regex(/^hook:\d{1,15}-\d{1,15}:\d{1,4}$/)])
    .meta({ description: 'Id of the command that sent the message, or of the reminder of a hook.' }),
});

// What follows is checked as text and only then made a number, by pipes: of what is transformed, zod leaves the default out of the document.
const digits = (written: string): boolean => /^[1-9]\d{0,15}$/.test(written);

/** A whole number from 1 to `max`, in digits alone: `1e2`, ` 5` and one that is given twice are no numbers here. */
export function wholeNumber(max: number) {
  const error = `must be a whole number from 1 to ${max}`;
  return z
    .string({ error })
    .refine(digits, { error })
    .pipe(z.coerce.number<string>().max(max, { error }))
    .meta({ type: 'integer', minimum: 1, maximum: max });
}

const NO_RECORD = { error: 'must be the number of a record (1 or more), or newest' };
/** Where records are read from: the first one, by its number, or the newest that there is. */
export const FirstRecord: z.ZodType<JournalStart> = z
  .string(NO_RECORD)
  .refine((written) => written === 'newest' || digits(written), NO_RECORD)
  .pipe(z.union([z.literal('newest'), z.coerce.number<string>().max(Number.MAX_SAFE_INTEGER, NO_RECORD)], NO_RECORD))
  .default(1);
/** The same, for the document. */
export const FIRST_RECORD_SCHEMA = {
  type: ['string', 'integer'],
  anyOf: [
    { const: 'newest', type: 'string' },
    { type: 'integer', minimum: 1, maximum: Number.MAX_SAFE_INTEGER },
  ],
};

/** Of an address that takes no questions. */
export const NoQuery = z.strictObject({});

/** How long a request waits for what becomes of its command. */
export const Waiting = z.strictObject({
  wait: z
    .enum(['stored', 'accepted', 'delivered', 'outcome'])
    .optional()
    .meta({
      description:
        'Stage at which the response is sent: the command is stored, the session has accepted it, its message is delivered to the model, or (for ' +
        'cancel_call only) its outcome is recorded. ' +
        `Default: stored. For a start and a fork: accepted, or stored after ${GATEWAY_BOUNDS.startAcceptedWithinMs / 1_000} seconds.`,
    }),
  timeout_ms: wholeNumber(GATEWAY_BOUNDS.waitMaxMs).default(GATEWAY_BOUNDS.waitDefaultMs).meta({
    description: 'Limit of `wait`. After it the response is 504, and the command may still take effect.',
  }),
});
export type Waiting = z.infer<typeof Waiting>;

/** A request's key; the schema is for the document, and idempotency.ts reads it. */
export const IdempotencyHeader = z.looseObject({
  'idempotency-key': z.string().optional().meta({
    description: 'A repeated request with the same key changes nothing. 1 to 255 visible ASCII characters.',
  }),
});

/** A command that is stored. */
export const StoredCommand = z.strictObject({
  session_id: z.string(),
  command_id: z.string(),
  seq: z.number().int().positive().meta({ description: 'Sequence number in the command stream.' }),
  duplicate: z.boolean().meta({
    description:
      'The command is a duplicate: it was stored before, or it repeats a start with the same message id. The receipt is that of the first command.',
  }),
  receipt: Receipt.optional().meta({ description: 'Receipt of the session, if `wait` asked for it and it arrived.' }),
});
export type StoredCommand = z.infer<typeof StoredCommand>;

/** The cancelling of a call: with `wait=outcome` also how it ended. */
export const CancelledCall = z.strictObject({ ...StoredCommand.shape, ...CallCancellation.partial().shape });

/** Problems that every route may answer with. */
export const PROBLEMS = {
  '4xx': problem('The request is invalid or was rejected; see the code.'),
  '5xx': problem('The gateway failed or is unavailable; see the code.'),
} as const;

function problem(description: string) {
  return { description, content: { 'application/problem+json': { schema: ProblemDocument } } };
}

/**
 * A verb's body over HTTP: as on NATS, with the field names of HTTP, and without the fields that the address or the token sets. It
 * is checked when it is sent, by the schema of the verb itself; this one is for the document.
 * @param without the fields that the address sets.
 * @param more further fields, by name.
 */
export function bodyOf(verb: Verb, without: readonly string[] = [], more: Readonly<Record<string, object>> = {}) {
  const { $schema: _, properties = {}, required = [], ...rest } = z.toJSONSchema(COMMAND_BODIES[verb], AS_WRITTEN);
  const isLeft = (name: string) => name !== 'actor' && !without.includes(name);
  const left = Object.entries(properties)
    .map(([name, schema]) => [httpFieldOf(name), schema] as const)
    .filter(([name]) => isLeft(name));
  const needed = required.map(httpFieldOf).filter(isLeft);
  const { command_id, ...others } = Object.fromEntries(left);
  const schema = {
    ...rest,
    properties: { command_id: { ...(command_id as object), description: OWN_ID }, ...others, ...more },
    ...(needed.length > 0 ? { required: needed } : {}),
  };
  return z.unknown().meta(schema as Record<string, unknown>);
}

/** What a command's own id is, for the document. */
export const OWN_ID =
  'Id of the command. A command is applied once per id. Default: a new UUIDv7, or an id derived from the idempotency key.';

/** The members that a verb's body has over HTTP. */
export function membersOf(verb: Verb): readonly string[] {
  const known = MEMBERS.get(verb);
  if (known) return known;
  const { properties = {} } = z.toJSONSchema(COMMAND_BODIES[verb], AS_WRITTEN);
  const members = Object.keys(properties)
    .filter((name) => name !== 'actor')
    .map(httpFieldOf);
  MEMBERS.set(verb, members);
  return members;
}

const MEMBERS = new Map<Verb, readonly string[]>();

const AS_WRITTEN = {
  io: 'input',
  unrepresentable: 'any',
  override: ({ zodSchema, jsonSchema }: { zodSchema: unknown; jsonSchema: { type?: unknown } }) => {
    if (zodSchema === JsonObject) jsonSchema.type = 'object';
  },
} as const satisfies Parameters<typeof z.toJSONSchema>[1];
