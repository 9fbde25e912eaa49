/** Commands: what one may ask of a session. The same strict bodies on every way in. */
import { z } from 'zod';
import { BOUNDS } from './bounds.ts';
import type { ErrorCode } from './error-catalogue.ts';
import { CommandId, ID_PATTERN } from './ids.ts';
import { Json, JsonObject } from './json.ts';
import { UserMessage } from './messages.ts';
import { PARKING_FIELDS, refineParking } from './parking.ts';
import { Permissions } from './permissions.ts';
import { Limits, McpServers, ModelName, Persona, ToolSelection } from './persona.ts';
import { REMINDER_FIELDS } from './reminders.ts';
import { type Mode, ModeInput } from './seams.ts';

const Text = z.string().refine((text) => text.trim().length > 0, { error: 'must not be empty' });
const Reason = z.string().refine((text) => new TextEncoder().encode(text).length <= BOUNDS.reasonMaxBytes, {
  error: `may have at most ${BOUNDS.reasonMaxBytes} bytes`,
});

/** Who sent a command. Only a gateway that has checked it sets `verified`; on the bare bus it is what the sender says. */
export const Actor = z.union([
  z
    .string()
    .trim()
    .min(1)
    .max(BOUNDS.actorMaxChars)
    .transform((name) => ({ name, verified: false as boolean })),
  z
    .strictObject({
      name: z.string().trim().min(1).max(BOUNDS.actorMaxChars),
      verified: z.literal(false).default(false),
    })
    .transform((actor): Actor => actor),
]);
/** See {@link Actor}. */
export interface Actor {
  name: string;
  verified: boolean;
}

const Envelope = { id: CommandId.optional(), actor: Actor.optional() };
/** What waits or is shown: a command by its id, or a reminder that a hook has returned by the id of its event. */
const InjectionId = z.union([CommandId, z.string().regex(/^hook:\d{1,15}-\d{1,15}:\d{1,4}$/)]);
const CallIdText = z.string().min(1).max(256);
const SignalData = Json.refine(
  (data) => new TextEncoder().encode(JSON.stringify(data)).length <= BOUNDS.signalDataMaxBytes,
  { error: `may have at most ${BOUNDS.signalDataMaxBytes} bytes as JSON` },
);
const Dedupe = z.string().min(1).max(256);
/** With an interrupt: also ends the model answer that streams and the calls that run. Alone it means an interrupt. */
const Preempt = z.boolean().optional();
const PREEMPT_ISSUE = { path: ['preempt'], error: 'goes with the mode interrupt_immediate only' };

function preemptsByInterrupt(body: { readonly mode: Mode; readonly preempt?: boolean | undefined }): boolean {
  return body.preempt !== true || body.mode === 'interrupt_immediate';
}

// A mode that is said is never changed; where none is, preempting can mean only one.
function withImpliedMode(verb: Verb, value: unknown): unknown {
  if ((verb !== 'steer' && verb !== 'remind') || typeof value !== 'object' || value === null) return value;
  const { preempt, mode } = value as { readonly preempt?: unknown; readonly mode?: unknown };
  return preempt === true && mode === undefined ? { ...value, mode: 'interrupt_immediate' } : value;
}

/** How a session is set up, beside its persona. */
export const StartSettings = z.strictObject({
  persona: z.union([z.string().trim().regex(ID_PATTERN), Persona]).optional(),
  provider: z
    .string()
    .trim()
    .regex(/^[a-z][a-z0-9-]{0,63}$/)
    .optional(),
  model: z.string().trim().min(1).max(1_024).optional(),
  base_url: z.url({ protocol: /^https?$/ }).optional(),
  mode: z.string().trim().regex(ID_PATTERN).optional(),
  max_turns: z.number().int().min(1).max(1_000_000).optional(),
  limits: Limits.optional(),
  tools: ToolSelection.optional(),
  mcp_servers: McpServers.optional(),
  permissions: Permissions.optional(),
  root: z.string().min(1).max(4_096).optional(),
  metadata: JsonObject.optional(),
});
/** See {@link StartSettings}. */
export type StartSettings = z.infer<typeof StartSettings>;

const Start = z
  .strictObject({
    ...StartSettings.shape,
    ...Envelope,
    message_id: z.string().max(256).optional(),
    prompt: Text.optional(),
    messages: z.array(UserMessage).min(1).max(1_000).optional(),
    fork: z
      .strictObject({
        session: z.string().regex(ID_PATTERN),
        n: z.number().int().positive(),
        changes: JsonObject.optional(),
      })
      .optional(),
  })
  .superRefine((body, context) => {
    if ((body.prompt === undefined) === (body.messages === undefined)) {
      context.addIssue({ code: 'custom', path: ['prompt'], message: 'exactly one of prompt and messages is needed' });
    }
    const silent = (body.messages ?? []).findIndex((message) =>
      message.content.every((part) => part.type === 'text' && part.text.trim() === ''),
    );
    if (silent >= 0) context.addIssue({ code: 'custom', path: ['messages', silent], message: 'must not be empty' });
    if (body.provider !== undefined && body.model === undefined) {
      context.addIssue({ code: 'custom', path: ['provider'], message: 'a provider needs a model beside it' });
    }
    const model = modelName(body);
    if (model !== undefined && !ModelName.safeParse(model).success) {
      context.addIssue({
        code: 'custom',
        path: ['model'],
        message: 'write provider/name, or give provider beside model',
      });
    }
  });

/** The full `provider/name` that a start asks for, or undefined. */
export function modelName(body: { provider?: string | undefined; model?: string | undefined }): string | undefined {
  if (body.model === undefined) return undefined;
  return body.provider === undefined ? body.model : `${body.provider}/${body.model}`;
}

/** The body of each verb, strict: an unknown key is refused by name. */
export const COMMAND_BODIES = {
  start: Start,
  prompt: z.strictObject({ ...Envelope, body: Text }),
  steer: z
    .strictObject({
      ...Envelope,
      body: Text,
      mode: ModeInput.default('finish_step'),
      preempt: Preempt,
      dedupe_key: Dedupe.optional(),
    })
    .refine(preemptsByInterrupt, PREEMPT_ISSUE),
  remind: z
    .strictObject({
      ...Envelope,
      body: Text,
      mode: ModeInput.default('finish_step'),
      preempt: Preempt,
      dedupe_key: Dedupe.optional(),
      ...REMINDER_FIELDS,
    })
    .refine(preemptsByInterrupt, PREEMPT_ISSUE),
  followup: z.strictObject({ ...Envelope, body: Text, dedupe_key: Dedupe.optional() }),
  approve: z.strictObject({
    ...Envelope,
    call_id: CallIdText,
    decision: z.enum(['allow', 'deny']),
    reason: Reason.optional(),
    args: JsonObject.optional(),
    remember: z.enum(['session', 'persona']).optional(),
  }),
  cancel: z.strictObject({ ...Envelope, reason: Reason.optional() }),
  cancel_call: z.strictObject({
    ...Envelope,
    call_id: CallIdText,
    reason: Reason.optional(),
    inject_reminder: z.boolean().default(true),
    timeout_ms: z.number().int().min(0).max(600_000).default(BOUNDS.abortGraceMs),
  }),
  suspend: z.strictObject({ ...Envelope, ...PARKING_FIELDS }).superRefine(refineParking),
  resume: z.strictObject({ ...Envelope }),
  signal: z.strictObject({
    ...Envelope,
    name: z.string().regex(ID_PATTERN, { error: 'a signal name is 1 to 64 characters of A-Z a-z 0-9 _ -' }),
    data: SignalData.optional(),
  }),
  revoke: z.strictObject({ ...Envelope, command_id: InjectionId }),
  replace: z.strictObject({ ...Envelope, command_id: InjectionId, body: Text }),
  delete: z.strictObject({ ...Envelope, reason: Reason.optional() }),
} as const;

/** A verb that clients may publish. */
export type Verb = keyof typeof COMMAND_BODIES;
/** All verbs, in the order of the command table. */
export const VERBS = Object.keys(COMMAND_BODIES) as Verb[];

/** A parsed body by verb. */
export type CommandBody<V extends Verb> = Omit<z.infer<(typeof COMMAND_BODIES)[V]>, 'id' | 'actor'>;

/** Verbs, and keys of bodies, that are in the schema but that a later release carries out. */
export const NOT_YET: Readonly<Record<string, readonly string[] | true>> = {
  start: ['fork'],
  approve: ['remember'],
  delete: true,
};

const TEXT_VERBS: ReadonlySet<string> = new Set(['prompt', 'steer', 'followup', 'remind']);

/** A command as it could be read: its body, or what is wrong with it. */
export type ParsedCommand =
  | {
      readonly ok: true;
      readonly verb: Verb | 'call_outcome' | 'feedback';
      readonly id: CommandId | undefined;
      readonly actor: Actor | undefined;
      readonly body: JsonObject;
    }
  | { readonly ok: false; readonly problem: CommandProblem };

/** What is wrong with a command: a catalogued code, a sentence, and the field that it is about. */
export interface CommandProblem {
  readonly code: ErrorCode;
  readonly message: string;
  readonly field?: string;
}

/**
 * Reads one command as published. Plain text is a body for `prompt`, `steer`, `followup` and `remind`; text whose
 * first non-blank character is `{` must be valid JSON. Never throws.
 * @param verb the last token of the subject.
 * @param payload the message's bytes as published, at most {@link BOUNDS}.commandBodyMaxBytes.
 */
export function parseCommand(verb: string, payload: Uint8Array): ParsedCommand {
  const problem = (code: ErrorCode, message: string, field?: string): ParsedCommand => ({
    ok: false,
    problem: field === undefined ? { code, message } : { code, message, field },
  });
  if (!Object.hasOwn(COMMAND_BODIES, verb)) {
    return problem(
      'unknown_command',
      `there is no command ${JSON.stringify(verb.slice(0, 64))}; the nearest is "${nearestVerb(verb)}"`,
      'verb',
    );
  }
  const known = verb as Verb;
  if (payload.length > BOUNDS.commandBodyMaxBytes) {
    return problem(
      'body_too_large',
      `the body has ${payload.length} bytes, at most ${BOUNDS.commandBodyMaxBytes} are taken`,
      'body',
    );
  }
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(payload);
  } catch {
    return problem('invalid_utf8', 'the body is not UTF-8 text', 'body');
  }
  let value: unknown;
  if (text.trimStart().startsWith('{')) {
    try {
      value = JSON.parse(text);
    } catch (error) {
      return problem(
        'invalid_json',
        `the body begins with { but is not valid JSON: ${(error as Error).message}`,
        'body',
      );
    }
  } else if (TEXT_VERBS.has(known)) {
    value = { body: text };
  } else if (text.trim() === '') {
    value = {};
  } else {
    return problem('invalid_json', `${known} takes a JSON object, not plain text`, 'body');
  }
  return parseBody(known, value);
}

/** Checks a body that has already been read as JSON. Never throws. See {@link parseCommand}. */
export function parseBody(verb: Verb, value: unknown): ParsedCommand {
  const early = notYetField(verb, value);
  if (early) return { ok: false, problem: early };
  const parsed = COMMAND_BODIES[verb].safeParse(withImpliedMode(verb, value));
  if (!parsed.success) return { ok: false, problem: fromZod(verb, parsed.error) };
  const { id, actor, ...body } = parsed.data as { id?: CommandId; actor?: Actor } & JsonObject;
  return { ok: true, verb, id, actor, body };
}

function notYetField(verb: Verb, value: unknown): CommandProblem | null {
  const later = NOT_YET[verb];
  const refuse = (what: string): CommandProblem => ({
    code: 'not_yet_available',
    message: `${what} is not there yet in this release`,
    field: what,
  });
  if (later === true) return refuse(verb);
  if (typeof value !== 'object' || value === null) return null;
  const keys = later ?? [];
  const key = keys.find((candidate) => (value as Record<string, unknown>)[candidate] !== undefined);
  if (key) return refuse(key);
  return null;
}

function fromZod(verb: Verb, error: z.ZodError): CommandProblem {
  const issue = deepestIssue(error.issues[0] as z.core.$ZodIssue);
  if (issue.code === 'unrecognized_keys') {
    const field = [...issue.path, issue.keys[0]].join('.');
    const allowed = issue.path.length === 0 ? `; ${verb} takes ${fieldsOf(verb).join(', ')}` : '';
    return { code: 'unknown_field', message: `unknown field "${field}"${allowed}`, field };
  }
  const field = issue.path.join('.') || 'body';
  const code: ErrorCode =
    issue.path[0] === 'mode' && verb !== 'start'
      ? 'invalid_mode'
      : issue.path[0] === 'body' && issue.code === 'custom'
        ? 'empty_body'
        : 'invalid_field';
  const message =
    code === 'invalid_mode'
      ? 'expected interrupt_immediate (alias interrupt), finish_step (alias steer) or audit_only'
      : issue.message;
  return { code, message: `${field}: ${message}`, field };
}

// A union's own message ("Invalid input") names nothing; the alternative that got furthest does.
function deepestIssue(issue: z.core.$ZodIssue): z.core.$ZodIssue {
  if (issue.code !== 'invalid_union') return issue;
  let best: z.core.$ZodIssue | undefined;
  for (const alternative of issue.errors) {
    const candidate = alternative[0];
    if (candidate && (!best || candidate.path.length > best.path.length || best.code === 'invalid_type'))
      best = candidate;
  }
  if (!best) return issue;
  const inner = deepestIssue(best);
  return { ...inner, path: [...issue.path, ...inner.path] };
}

function fieldsOf(verb: Verb): string[] {
  return Object.keys(COMMAND_BODIES[verb].shape);
}

/** The known verb that is spelled most like the given one (Levenshtein distance). */
export function nearestVerb(verb: string): Verb {
  const asked = verb.slice(0, 32).toLowerCase().replaceAll('-', '_');
  let best: Verb = 'steer';
  let bestDistance = Number.POSITIVE_INFINITY;
  for (const candidate of VERBS) {
    const distance = editDistance(asked, candidate);
    if (distance < bestDistance) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best;
}

function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const substitute = (row[j - 1] as number) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(substitute, (row[j] as number) + 1, (next[j - 1] as number) + 1));
    }
    row = next;
  }
  return row[b.length] as number;
}
