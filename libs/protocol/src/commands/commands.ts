/**
 * Commands to a session. The same strict bodies apply on NATS, over HTTP and in programs, with other spellings of names
 * over HTTP (http-command-fields.ts) and in programs (casing.ts).
 */
import * as z from 'zod';
import type { ErrorCode } from '../catalogues/error-codes.ts';
import { INJECTION_VERBS, type Mode, ModeInput } from '../catalogues/seams.ts';
import { ForkRequest } from '../journal/forks.ts';
import { UserMessage } from '../journal/messages.ts';
import { REMINDER_FIELDS } from '../journal/reminders.ts';
import { OutputSchema } from '../personas/output-schema.ts';
import { Permissions } from '../personas/permissions.ts';
import { Limits, McpServers, modeProblem, Persona, StoredPersona } from '../personas/persona.ts';
import { StandIns, ToolSelection } from '../tools/tool-selection.ts';
import { BOUNDS } from '../wire/bounds.ts';
import { listOf } from '../wire/containers.ts';
import { CommandId, ID_PATTERN } from '../wire/ids.ts';
import { Json, JsonObject, Reason } from '../wire/json.ts';
import { nearestWord } from '../wire/nearest-word.ts';
import { readStrictly, type SchemaProblem } from '../wire/schema-problems.ts';
import { parseStrictJson } from '../wire/strict-json.ts';
import { cutText, hasVisibleText } from '../wire/unicode-text.ts';
import { unwritableProblem } from '../wire/unwritable-json.ts';
import { Actor } from './actor.ts';
import { CHOICE_FIELDS, refineModelChoice, STORED_CHOICE_FIELDS } from './model-choice.ts';
import { RememberScope } from './remembered-rules.ts';
import { secretProblem } from './request-secrets.ts';
import { refineSuspensionRequest, SUSPENSION_REQUEST_SHAPE } from './suspension-request.ts';

const Text = z.string().refine(hasVisibleText, { error: 'must not be empty' });

const Envelope = { id: CommandId.optional(), actor: Actor.optional() };
/** The id of an injection: that of its command, or `hook:<effect id>:<number>` for a reminder of a hook. */
const InjectionId = z.union([CommandId, z.string().regex(/^hook:\d{1,15}-\d{1,15}:\d{1,4}$/)]);
const CallIdText = z.string().min(1).max(256);
const SignalData = Json.refine(
  (data) => new TextEncoder().encode(JSON.stringify(data)).length <= BOUNDS.signalDataMaxBytes,
  { error: `may have at most ${BOUNDS.signalDataMaxBytes} bytes as JSON` },
);
const Dedupe = z.string().min(1).max(256);
/**
 * With an interrupt: also ends the streaming model answer and the running calls. Without a mode it means an interrupt.
 */
const Preempt = z.boolean().optional();
const PREEMPT_ISSUE = { path: ['preempt'], error: 'requires the mode interrupt_immediate' };

function preemptsByInterrupt(body: { readonly mode: Mode; readonly preempt?: boolean | undefined }): boolean {
  return body.preempt !== true || body.mode === 'interrupt_immediate';
}

// An explicit mode is never changed. Without one, `preempt` implies an interrupt.
function withImpliedMode(verb: Verb, value: unknown): unknown {
  if ((verb !== 'steer' && verb !== 'remind') || typeof value !== 'object' || value === null) return value;
  const { preempt, mode } = value as { readonly preempt?: unknown; readonly mode?: unknown };
  return preempt === true && mode === undefined ? { ...value, mode: 'interrupt_immediate' } : value;
}

/** Settings of a session: its persona and model, and those in addition to the persona. */
export const StartSettings = z.strictObject({
  ...CHOICE_FIELDS,
  /** The name of a mode that the persona defines. */
  mode: z.string().trim().regex(ID_PATTERN).optional(),
  max_turns: z.number().int().min(1).max(1_000_000).optional(),
  limits: Limits.optional(),
  /** The JSON Schema of the final answer, instead of the persona's. */
  output: OutputSchema.optional(),
  tools: ToolSelection.optional(),
  stand_ins: StandIns.optional(),
  mcp_servers: McpServers.optional(),
  permissions: Permissions.optional(),
  root: z.string().min(1).max(4_096).optional(),
  metadata: JsonObject.optional(),
  /** Personas for delegation by name, in addition to those that the host knows. */
  personas: listOf(Persona)
    .max(BOUNDS.crewMax)
    .refine((personas) => new Set(personas.map(({ name }) => name)).size === personas.length, {
      error: 'names must be unique',
    })
    .optional(),
  /** A name for the session's trace, or the `traceparent` of the caller. Child sessions get theirs from the parent. */
  trace: z.string().regex(ID_PATTERN, { error: 'a trace is 1 to 64 characters of A-Z a-z 0-9 _ -' }).optional(),
  /**
   * The policy of the host applies to the session, even if the host trusts the bus. Hosts set it for restricted
   * senders.
   */
  restricted: z.literal(true).optional(),
});
export type StartSettings = z.infer<typeof StartSettings>;
/** The settings of a start in a journal, see `StoredPersona`. */
export const StoredStartSettings = StartSettings.extend({
  ...STORED_CHOICE_FIELDS,
  mcp_servers: StoredPersona.shape.mcp_servers,
  personas: listOf(StoredPersona).max(BOUNDS.crewMax).optional(),
});

const UserMessages = listOf(UserMessage).min(1).max(1_000);

function refineMessages(
  { messages = [] }: { readonly messages?: readonly UserMessage[] | undefined },
  context: z.core.$RefinementCtx,
): void {
  const silent = messages.findIndex(({ content }) =>
    content.every((part) => part.type === 'text' && !hasVisibleText(part.text)),
  );
  if (silent >= 0) context.addIssue({ code: 'custom', path: ['messages', silent], message: 'must not be empty' });
}

const { persona: _, ...ModelFields } = CHOICE_FIELDS;

// POSIX or Windows: the sender and the host may run different systems.
const ABSOLUTE_PATH = /^(\/|\\\\|[A-Za-z]:[\\/])/;
const BESIDE_FORK: ReadonlySet<string> = new Set(['fork', 'id', 'actor', 'message_id']);

const Start = z
  .strictObject({
    ...StartSettings.shape,
    ...Envelope,
    /** A start with the same message id is the same start, as long as the session's journal exists. */
    message_id: z.string().min(1).max(256).optional(),
    prompt: Text.optional(),
    messages: UserMessages.optional(),
    fork: ForkRequest.optional(),
  })
  .superRefine((body, context) => {
    if (body.fork !== undefined) {
      // A fork takes these settings from its origin, so they would be ignored without notice.
      const key = Object.keys(body).find((name) => !BESIDE_FORK.has(name) && body[name as 'prompt'] !== undefined);
      const where =
        key !== undefined && key in ForkRequest.shape.changes.unwrap().shape ? ': put it into fork.changes' : '';
      if (key !== undefined)
        context.addIssue({ code: 'custom', path: [key], message: `a fork has this from its origin${where}` });
      return;
    }
    if ((body.prompt === undefined) === (body.messages === undefined)) {
      context.addIssue({ code: 'custom', path: ['prompt'], message: 'exactly one of prompt and messages is required' });
    }
    refineMessages(body, context);
    if (body.root !== undefined && !ABSOLUTE_PATH.test(body.root)) {
      const message = 'must be an absolute path on the host';
      context.addIssue({ code: 'custom', path: ['root'], message });
    }
    // Only the host knows the modes of a persona given by name.
    const mode =
      body.mode !== undefined && typeof body.persona === 'object' ? modeProblem(body.persona, body.mode) : null;
    if (mode !== null) context.addIssue({ code: 'custom', path: ['mode'], message: mode });
    refineModelChoice(body, context);
  });

const NOT_IN_A_STEER = ['messages', 'provider', 'model', 'base_url', 'mode'] as const;

/** The next prompt of a session. It may select another model, or another mode of the persona. */
const Prompt = z
  .strictObject({
    ...Envelope,
    body: Text.optional(),
    /** Instead of `body`: messages with files, such as images. */
    messages: UserMessages.optional(),
    ...ModelFields,
    /** A mode of the session's current persona; null for none. */
    mode: StartSettings.shape.mode.nullable(),
    /** During a run the text becomes a steer, and is not rejected as `session_busy`. */
    if_running: z.literal('steer').optional(),
  })
  .superRefine((body, context) => {
    const { body: text, messages } = body;
    if (text === undefined && messages === undefined)
      context.addIssue({ code: 'invalid_type', expected: 'string', input: undefined, path: ['body'] });
    if (text !== undefined && messages !== undefined)
      context.addIssue({
        code: 'custom',
        path: ['messages'],
        message: 'cannot be combined with body: give one of them',
      });
    refineMessages(body, context);
    refineModelChoice(body, context);
    // A steer would ignore these members without notice.
    const other = body.if_running === undefined ? undefined : NOT_IN_A_STEER.find((key) => body[key] !== undefined);
    if (other !== undefined)
      context.addIssue({
        code: 'custom',
        path: [other],
        message: 'cannot be combined with if_running: a steering message has only text',
      });
  });

/** Members of a steer and of a reminder. A follow-up has no mode. */
const INJECTION_FIELDS = {
  body: Text,
  mode: ModeInput.default('finish_step'),
  preempt: Preempt,
  dedupe_key: Dedupe.optional(),
};

/** The strict schema of the body of each verb. An error names an unknown key. */
export const COMMAND_BODIES = {
  start: Start,
  prompt: Prompt,
  steer: z.strictObject({ ...Envelope, ...INJECTION_FIELDS }).refine(preemptsByInterrupt, PREEMPT_ISSUE),
  remind: z
    .strictObject({ ...Envelope, ...INJECTION_FIELDS, ...REMINDER_FIELDS })
    .refine(preemptsByInterrupt, PREEMPT_ISSUE),
  followup: z.strictObject({ ...Envelope, body: Text, dedupe_key: Dedupe.optional() }),
  approve: z
    .strictObject({
      ...Envelope,
      call_id: CallIdText,
      decision: z.enum(['allow', 'deny']),
      reason: Reason.optional(),
      args: JsonObject.optional(),
      remember: RememberScope.optional(),
    })
    .refine(({ decision, args }) => decision === 'allow' || args === undefined, {
      path: ['args'],
      error: 'requires the decision allow',
    }),
  cancel: z.strictObject({ ...Envelope, reason: Reason.optional() }),
  cancel_call: z.strictObject({
    ...Envelope,
    call_id: CallIdText,
    reason: Reason.optional(),
    inject_reminder: z.boolean().default(true),
    timeout_ms: z.number().int().min(0).max(600_000).default(BOUNDS.abortGraceMs),
  }),
  suspend: z.strictObject({ ...Envelope, ...SUSPENSION_REQUEST_SHAPE }).superRefine(refineSuspensionRequest),
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
/** All verbs that clients may publish, in the order of {@link COMMAND_BODIES}. */
export const VERBS = Object.keys(COMMAND_BODIES) as Verb[];

/** The parsed body of a verb, without the identity of the command. */
export type CommandBody<V extends Verb> = Omit<z.infer<(typeof COMMAND_BODIES)[V]>, 'id' | 'actor'>;

const TEXT_VERBS: ReadonlySet<string> = new Set<Verb>(['prompt', ...INJECTION_VERBS]);

/** Whether the body of a verb may be plain text. */
export function takesText(verb: string): boolean {
  return TEXT_VERBS.has(verb);
}

/** Verbs of hosts and workers that are parsed as commands. */
export type InternalVerb = 'call_outcome' | 'feedback' | 'start_child' | 'cancel_child' | 'child_ended' | 'message';

/** A parsed command: its body, or its problem; in both cases with the valid part of its identity. */
export type ParsedCommand = CommandIdentity &
  (
    | { readonly ok: true; readonly verb: Verb | InternalVerb; readonly body: JsonObject }
    | { readonly ok: false; readonly problem: CommandProblem }
  );

/** The valid part of a command's identity: its id and its actor. */
export interface CommandIdentity {
  readonly id?: CommandId | undefined;
  readonly actor?: Actor | undefined;
}

/** The problem of a command: a catalogued code, a sentence, and the affected field. */
export interface CommandProblem {
  readonly code: ErrorCode;
  readonly message: string;
  readonly field?: string;
}

/** The problem of a command with an invalid id in its body or header. */
export const INVALID_COMMAND_ID: CommandProblem = {
  code: 'invalid_id',
  message: 'a command id is 1 to 64 characters of A-Z a-z 0-9 _ -',
  field: 'id',
};

/**
 * Parses a published command. Text with `{` as its first non-blank character must be valid JSON without repeated
 * members. Other text is the `body` of `prompt`, `steer`, `followup` and `remind`. Blank text counts as `{}` for other
 * verbs. Never throws.
 * @param verb the last token of the subject.
 * @param payload the message's bytes as published. More than {@link BOUNDS}.commandBodyMaxBytes are rejected.
 */
export function parseCommand(verb: string, payload: Uint8Array): ParsedCommand {
  const isKnown = Object.hasOwn(COMMAND_BODIES, verb);
  const read = readBody(verb, payload);
  if (!isKnown) return { ok: false, problem: unknownVerb(verb), ...('value' in read ? identityOf(read.value) : {}) };
  return 'value' in read ? parseBody(verb as Verb, read.value) : { ok: false, problem: read };
}

function readBody(verb: string, payload: Uint8Array): { readonly value: unknown } | CommandProblem {
  const field = 'body';
  if (payload.length > BOUNDS.commandBodyMaxBytes) {
    const message = `the body has ${payload.length} bytes; the limit is ${BOUNDS.commandBodyMaxBytes}`;
    return { code: 'body_too_large', message, field };
  }
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(payload);
  } catch {
    return { code: 'invalid_utf8', message: 'the body is not UTF-8 text', field };
  }
  if (text.trimStart().startsWith('{')) {
    const json = parseStrictJson(text);
    if (json.ok) return { value: json.value };
    return { code: 'invalid_json', message: `the body begins with { but is not valid JSON: ${json.why}`, field };
  }
  if (takesText(verb)) return { value: { body: text } };
  if (text.trim() === '') return { value: {} };
  return { code: 'invalid_json', message: `${verb} takes a JSON object, not plain text`, field };
}

function unknownVerb(verb: string): CommandProblem {
  const meant = nearestVerb(verb);
  const hint = meant === null ? `there are ${VERBS.join(', ')}` : `the nearest is "${meant}"`;
  const message = `there is no command ${JSON.stringify(cutText(verb, 64))}; ${hint}`;
  return { code: 'unknown_command', message, field: 'verb' };
}

/** Validates a body that is already parsed JSON, as {@link parseCommand} does. Never throws. */
export function parseBody(verb: Verb, value: unknown): ParsedCommand {
  const unwritable = unwritableProblem(value);
  if (unwritable) return { ok: false, problem: unwritable, ...identityOf(value) };
  const read = readStrictly(COMMAND_BODIES[verb], withImpliedMode(verb, value));
  if (!read.ok) {
    const refused = problemOf(read.problems, codeFor(verb), `; ${verb} takes ${fieldsOf(verb).join(', ')}`);
    return { ok: false, problem: refused, ...identityOf(value) };
  }
  const { id, actor, ...body } = read.data as { id?: CommandId; actor?: Actor } & JsonObject;
  const secret = secretProblem(verb, body);
  if (secret) return { ok: false, problem: secret, id, actor };
  return { ok: true, verb, id, actor, body };
}

/** The identity in a body, even if the rest is invalid: the rejection needs the id that the sender knows. */
export function identityOf(value: unknown): CommandIdentity {
  const { id, actor } = (typeof value === 'object' && value !== null ? value : {}) as Record<string, unknown>;
  const named = CommandId.safeParse(id);
  const by = Actor.safeParse(actor);
  return { ...(named.success ? { id: named.data } : {}), ...(by.success ? { actor: by.data } : {}) };
}

/**
 * The problem for which a command is rejected. An invalid id has priority. An unknown field has the code
 * `unknown_field`.
 * @param codeOf the code for a problem of a field's value.
 * @param fields the end of the message about an unknown top-level field: which fields the verb takes.
 */
export function problemOf(
  problems: readonly [SchemaProblem, ...SchemaProblem[]],
  codeOf: (problem: SchemaProblem) => ErrorCode = () => 'invalid_field',
  fields = '',
): CommandProblem {
  if (problems.some(({ path }) => path[0] === 'id')) return INVALID_COMMAND_ID;
  const [problem] = problems;
  const { path, kind, words } = problem;
  const field = path.join('.') || 'body';
  if (kind === 'unknown_key') {
    const message = `unknown field "${field}"${words}${path.length === 1 ? fields : ''}`;
    return { code: 'unknown_field', message, field };
  }
  const code = codeOf(problem);
  return { code, message: `${field}: ${code === 'invalid_mode' ? MODE_WORDS : words}`, field };
}

const MODE_WORDS = 'expected interrupt_immediate (alias interrupt), finish_step (alias steer) or audit_only';

function codeFor(verb: Verb): (problem: SchemaProblem) => ErrorCode {
  return ({ path, kind }) => {
    if (path[0] === 'mode' && (verb === 'steer' || verb === 'remind')) return 'invalid_mode';
    return path[0] === 'body' && kind === 'rule' ? 'empty_body' : 'invalid_field';
  };
}

function fieldsOf(verb: Verb): string[] {
  return Object.keys(COMMAND_BODIES[verb].shape);
}

/** The verb of clients with the most similar spelling, or null if none is similar enough. */
export function nearestVerb(verb: string): Verb | null {
  return nearestWord(verb.toLowerCase().replaceAll('-', '_'), VERBS);
}
