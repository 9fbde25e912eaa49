/** The request of an AG-UI client: a `RunAgentInput` of AG-UI 1.0, with Coxswain's options in `forwardedProps`. */
import { cutText, hasVisibleText, ID_PATTERN, problemOf, readStrictly } from '@coxswain/protocol';
import * as z from 'zod';
import { GATEWAY_BOUNDS, Problem } from '../context/mod.ts';

const Id = z.string().min(1).max(256);
/** Of the history, only the ids and the newest message are used: the session has its own history. */
const ClientMessage = z.looseObject({
  id: Id,
  role: z.enum(['user', 'assistant', 'system', 'developer', 'tool', 'activity', 'reasoning']),
  content: z.unknown().optional(),
});
const Resume = z.strictObject({
  interruptId: z.string().min(1).max(320),
  status: z.enum(['resolved', 'cancelled']),
  payload: z.unknown().optional(),
  metadata: z.unknown().optional(),
});

/** How a message is sent to a running session. */
export const BUSY_MODES = ['follow_up', 'finish_step', 'interrupt_immediate', 'audit_only'] as const;

/** Coxswain's members of `forwardedProps`. Other members are ignored. */
const CoxswainProps = z.looseObject({
  mode: z.enum(BUSY_MODES).default('follow_up').meta({
    description:
      'How to handle a message to a running session: as a follow-up after the current work, or as a steering message of this mode.',
  }),
  preempt: z
    .boolean()
    .default(false)
    .meta({ description: 'With interrupt_immediate: also ends the streaming answer and the running calls.' }),
  page_tools: z.enum(['refuse', 'ignore']).default('refuse').meta({
    description: 'Handling of frontend tools: reject the request, or run the session without them.',
  }),
  start: z
    .looseObject({})
    .default({})
    .meta({ description: 'Settings of a new session: members of the body of a start, without the prompt.' }),
});

/** The request body. */
export const RunInput = z.strictObject({
  threadId: Id.meta({ description: 'The session. A thread id that is not a valid session id is hashed into one.' }),
  runId: Id,
  protocolVersion: z.string().max(32).optional(),
  parentRunId: Id.optional(),
  state: z.unknown().optional().meta({ description: 'The state of STATE_SNAPSHOT and STATE_DELTA. Only `n` is read.' }),
  messages: z.array(ClientMessage).max(10_000),
  tools: z
    .array(z.looseObject({ name: z.string() }))
    .max(256)
    .default([]),
  context: z
    .array(z.strictObject({ description: z.string().max(16_384), value: z.string().max(131_072) }))
    .max(64)
    .default([]),
  forwardedProps: z.unknown().optional(),
  resume: z.array(Resume).max(64).optional(),
});

/** An answer to an interrupt. */
export type ResumeEntry = z.output<typeof Resume>;

/** A parsed request. */
export interface RunRequest {
  readonly threadId: string;
  readonly runId: string;
  /** The newest message if it is the user's. Null if the request only attaches to the session or resumes it. */
  readonly message: { readonly id: string; readonly text: string; readonly field: string } | null;
  /** Ids of the newest messages of users in the request. */
  readonly known: ReadonlySet<string>;
  readonly resume: readonly ResumeEntry[];
  /** Number of the last record that the client has received; null if it does not say. */
  readonly seen: number | null;
  readonly mode: (typeof BUSY_MODES)[number];
  readonly preempt: boolean;
  readonly start: Readonly<Record<string, unknown>>;
}

/**
 * Parses a request body.
 * @throws Problem (HTTP status 400) that names the field.
 */
export function readRunInput(body: unknown): RunRequest {
  const input = read(RunInput, body, '');
  const { forwardedProps } = input;
  const isObject = typeof forwardedProps === 'object' && forwardedProps !== null && !Array.isArray(forwardedProps);
  const props = read(CoxswainProps, isObject ? forwardedProps : {}, 'forwardedProps.');
  if (input.tools.length > 0 && props.page_tools === 'refuse') throw frontendToolProblem(input.tools[0]?.name ?? '');
  if (props.preempt && props.mode !== 'interrupt_immediate')
    throw invalidFieldProblem('forwardedProps.preempt', 'requires the mode interrupt_immediate');
  const newest = input.messages.at(-1);
  const field = `messages[${input.messages.length - 1}].content`;
  const text = newest?.role === 'user' ? textOf(newest.content, field) : null;
  const userMessages = input.messages.filter(({ role }) => role === 'user');
  return {
    threadId: input.threadId,
    runId: input.runId,
    message: newest && text !== null ? { id: newest.id, text: appendContext(text, input.context), field } : null,
    known: new Set(userMessages.slice(-GATEWAY_BOUNDS.aguiKnownMessagesMax).map(({ id }) => id)),
    resume: input.resume ?? [],
    seen: lastSeenIn(input.state),
    mode: props.mode,
    preempt: props.preempt,
    start: props.start,
  };
}

function read<S extends z.ZodType>(schema: S, value: unknown, at: string): z.output<S> {
  const given = readStrictly(schema, value);
  if (given.ok) return given.data;
  const { code, message, field = '' } = problemOf(given.problems);
  throw new Problem(code, message.replace(field, `${at}${field}`), { field: `${at}${field}` });
}

function textOf(content: unknown, place: string): string {
  const parts = typeof content === 'string' ? [{ type: 'text', text: content }] : content;
  if (!Array.isArray(parts)) throw invalidFieldProblem(place, 'must be a text or a list of parts');
  const texts = parts.map((part: { readonly type?: unknown; readonly text?: unknown } | null, at) => {
    if (part?.type === 'text' && typeof part.text === 'string') return part.text;
    throw invalidFieldProblem(
      `${place}[${at}]`,
      'only text is supported; put files where the tools of the session can read them',
    );
  });
  const text = texts.join('\n');
  if (!hasVisibleText(text)) throw new Problem('empty_body', `${place}: must not be empty`, { field: place });
  return text;
}

const CONTEXT_HEAD = '\n\n<context>\n';
const CONTEXT_TAIL = '\n</context>';

/** Appends the context to the message that it belongs to. */
function appendContext(
  text: string,
  context: readonly { readonly description: string; readonly value: string }[],
): string {
  if (context.length === 0) return text;
  return `${text}${CONTEXT_HEAD}${context.map(({ description, value }) => `${description}: ${value}`).join('\n')}${CONTEXT_TAIL}`;
}

/** A message without its appended context. */
export function removeContext(text: string): string {
  const at = text.endsWith(CONTEXT_TAIL) ? text.lastIndexOf(CONTEXT_HEAD) : -1;
  return at < 0 ? text : text.slice(0, at);
}

function lastSeenIn(state: unknown): number | null {
  const n = (state as { readonly n?: unknown } | null | undefined)?.n;
  return typeof n === 'number' && Number.isSafeInteger(n) && n >= 0 ? n : null;
}

function frontendToolProblem(name: string): Problem {
  const called = `${JSON.stringify(cutText(name, 128))} is a frontend tool`;
  return invalidFieldProblem(
    'tools',
    `${called}, and sessions call only tools on the bus; serve it there (docs/guides/bus-tools.md), or send forwardedProps.page_tools: "ignore"`,
  );
}

function invalidFieldProblem(field: string, words: string): Problem {
  return new Problem('invalid_field', `${field}: ${words}`, { field });
}

/** Whether a thread id is a valid session id. */
export function isSessionId(threadId: string): boolean {
  return ID_PATTERN.test(threadId);
}
