/** Schemas that routes share: path parameters, waiting for a command, responses. */
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
  WrapperObject,
} from '@coxswain/protocol';
import * as z from 'zod';
import { GATEWAY_BOUNDS, ProblemDocument } from '../context/mod.ts';

/** The path parameter of a session. */
export const OfSession = z.strictObject({ session_id: SessionId });
/** The path parameters of a call. */
export const OfCall = z.strictObject({ session_id: SessionId, call_id: z.string().min(1).max(256) });
/** The path parameters of a queued message or a reminder. */
export const OfPending = z.strictObject({
  session_id: SessionId,
  target_command_id: z
    .union([CommandId, z.string().regex(/^hook:\d{1,15}-\d{1,15}:\d{1,4}$/)])
    .meta({ description: 'Id of the command that sent the message, or of the reminder of a hook.' }),
});

// Numbers are validated as text and then converted by a pipe: zod omits the default of a transformed schema from the
// document.
const digits = (written: string): boolean => /^[1-9]\d{0,15}$/.test(written);

/** A whole number from 1 to `max`, written in digits: `1e2`, ` 5` and a repeated parameter are invalid. */
export function wholeNumber(max: number) {
  const error = `must be a whole number from 1 to ${max}`;
  return z
    .string({ error })
    .refine(digits, { error })
    .pipe(z.coerce.number<string>().max(max, { error }))
    .meta({ type: 'integer', minimum: 1, maximum: max });
}

const NO_RECORD = { error: 'must be the number of a record (1 or more), or newest' };
/** The first record to read: its number, or `newest`. */
export const FirstRecord: z.ZodType<JournalStart> = z
  .string(NO_RECORD)
  .refine((written) => written === 'newest' || digits(written), NO_RECORD)
  .pipe(z.union([z.literal('newest'), z.coerce.number<string>().max(Number.MAX_SAFE_INTEGER, NO_RECORD)], NO_RECORD))
  .default(1);
/** The schema of {@link FirstRecord} in the OpenAPI document. */
export const FIRST_RECORD_SCHEMA = {
  type: ['string', 'integer'],
  anyOf: [
    { const: 'newest', type: 'string' },
    { type: 'integer', minimum: 1, maximum: Number.MAX_SAFE_INTEGER },
  ],
};

/** The query of a route without parameters. */
export const NoQuery = z.strictObject({});

/** The stage of a command that a request waits for, and the timeout in milliseconds. */
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

/** The idempotency key. This schema is for the document; idempotency.ts validates the key. */
export const IdempotencyHeader = z.looseObject({
  'idempotency-key': z.string().optional().meta({
    description: 'A repeated request with the same key changes nothing. 1 to 255 visible ASCII characters.',
  }),
});

/** The response to a stored command. */
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

/** The response to the cancellation of a call. With `wait=outcome` it contains the outcome. */
export const CancelledCall = z.strictObject({ ...StoredCommand.shape, ...CallCancellation.partial().shape });

/** Problem responses of every route. */
export const PROBLEMS = {
  '4xx': problem('The request is invalid or was rejected; see the code.'),
  '5xx': problem('The gateway failed or is unavailable; see the code.'),
} as const;

function problem(description: string) {
  return { description, content: { 'application/problem+json': { schema: ProblemDocument } } };
}

/**
 * The body of a verb over HTTP: as on NATS, with the field names of HTTP, and without fields that come from the path or
 * the token. This schema is for the OpenAPI document; sending the command validates the body.
 * @param without fields that come from the path.
 * @param more additional fields, by name.
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

/** The description of `command_id` in the document. */
export const OWN_ID =
  'Id of the command. A command is applied once per id. Default: a new UUIDv7, or an id derived from the idempotency key.';

/** The members of a verb's body over HTTP. */
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
    if (zodSchema === JsonObject || zodSchema === WrapperObject) jsonSchema.type = 'object';
  },
} as const satisfies Parameters<typeof z.toJSONSchema>[1];
