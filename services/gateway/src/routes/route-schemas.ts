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
    .meta({ description: 'The command that brought it; of a reminder that a hook has given, its id.' }),
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

const NO_RECORD = { error: 'must be a record’s number, from 1 on, or newest' };
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
        'Answers once the command is stored, once the session has accepted it, once its message is delivered to the model, or, of the ' +
        'cancelling of a call only, once its outcome is recorded. ' +
        `Default: stored; of a start and a fork accepted, or stored after ${GATEWAY_BOUNDS.startAcceptedWithinMs / 1_000} seconds.`,
    }),
  timeout_ms: wholeNumber(GATEWAY_BOUNDS.waitMaxMs).default(GATEWAY_BOUNDS.waitDefaultMs).meta({
    description: 'How long `wait` waits at most; then the answer is a 504, and the command may still take effect.',
  }),
});
/** See {@link Waiting}. */
export type Waiting = z.infer<typeof Waiting>;

/** A request's key; the schema is for the document, and idempotency.ts reads it. */
export const IdempotencyHeader = z.looseObject({
  'idempotency-key': z.string().optional().meta({
    description:
      'The same request under the same key changes nothing the second time. 1 to 255 visible ASCII characters.',
  }),
});

/** A command that is stored. */
export const StoredCommand = z.strictObject({
  session_id: z.string(),
  command_id: z.string(),
  seq: z.number().int().positive().meta({ description: 'Its position in the command stream.' }),
  duplicate: z.boolean().meta({
    description:
      'The bus had it already, and nothing was stored a second time; or it repeats the start of the session under its message id. The receipt is that of the first.',
  }),
  receipt: Receipt.optional().meta({ description: 'The session’s receipt, where one was waited for and came.' }),
});
/** See {@link StoredCommand}. */
export type StoredCommand = z.infer<typeof StoredCommand>;

/** The cancelling of a call: with `wait=outcome` also how it ended. */
export const CancelledCall = z.strictObject({ ...StoredCommand.shape, ...CallCancellation.partial().shape });

/** Problems that every route may answer with. */
export const PROBLEMS = {
  '4xx': problem('What is wrong with the request: the code says it.'),
  '5xx': problem('What the gateway cannot do at the moment, or has failed to do.'),
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
  'The command’s own id: the same command under the same id is applied once. Default: a new UUIDv7, or one that follows from the idempotency key.';

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
