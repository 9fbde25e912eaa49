/** Methods beyond the protocol: they send messages to a running session, and cancel one of its calls. */

import { type BodyInput, newCommandId } from '@coxswain/client';
import {
  BOUNDS,
  type CallCancellation,
  type CancelOutcome,
  COMMAND_BODIES,
  cutGraphemes,
  type ErrorCode,
  Mode,
  problemSentences,
  type Receipt,
  readStrictly,
  type Verb,
} from '@coxswain/protocol';
import * as z from 'zod';
import { ACP_BOUNDS } from './acp-bounds.ts';
import type { EditorSession } from './editor-session.ts';
import { asRequestError, invalidParams } from './request-errors.ts';

/** The parameters for `cox acp` itself. The other parameters are a command's body, which the session validates. */
const ABOUT = {
  sessionId: z.string(),
  _meta: z.record(z.string(), z.unknown()).nullish(),
  id: z.string().optional(),
};
const MessageParams = z.looseObject({
  ...ABOUT,
  /** The stage of the receipt to wait for. */
  wait: z.enum(['stored', 'accepted', 'delivered']).default('accepted'),
});
const CancelCallParams = z.looseObject({
  ...ABOUT,
  toolCallId: z.string().min(1).max(256),
  // The wait for the outcome is computed from it.
  timeout_ms: COMMAND_BODIES.cancel_call.shape.timeout_ms,
});
/** The modes of `inject`: those of a steer, and `steer` and `queue`. */
const InjectMode = z.object({ mode: z.enum([...Mode.options, 'steer', 'queue']).optional() });

/** An extension method, by its name without a prefix. */
export type ExtensionMethod = 'steering' | 'inject' | 'inject_reminder' | 'remind' | 'cancel_tool_call';

/** All extension methods, in the order in which they are advertised. */
export const EXTENSION_METHODS: readonly ExtensionMethod[] = [
  'steering',
  'inject',
  'inject_reminder',
  'remind',
  'cancel_tool_call',
];

/** The result of a method that sends a message. */
export interface CommandResult {
  readonly commandId: string;
  readonly stage: Receipt['stage'] | 'stored';
  readonly seam?: string | undefined;
  readonly turn?: number | undefined;
  /** Whether the message waits for the session's next run. */
  readonly pendingForNextRun?: boolean | undefined;
}

/** The result of cancelling a call. */
export interface CancelResult {
  readonly commandId: string;
  readonly toolCallId: string;
  readonly outcome: CancelOutcome;
  readonly tool: string | null;
  readonly reason: string | null;
}

/**
 * Runs an extension method.
 * @param sessionOf returns an open session, and throws RequestError if there is none with the id.
 * @throws RequestError
 */
export async function runExtension(
  method: ExtensionMethod,
  params: unknown,
  sessionOf: (id: string) => EditorSession,
): Promise<CommandResult | CancelResult> {
  try {
    const verb = VERB_OF[method];
    refuseUnknown(params, verb, method);
    if (method === 'cancel_tool_call') return await cancelCall(read(CancelCallParams, params), sessionOf);
    const message = read(MessageParams, params);
    if (method === 'remind') return await send('remind', message, sessionOf);
    if (method === 'steering') return await send('steer', message, sessionOf);
    const { mode } = read(InjectMode, message, 'invalid_mode');
    const { mode: _, ...others } = message;
    return mode === 'queue' ? await send('followup', others, sessionOf) : await send('steer', message, sessionOf);
  } catch (error) {
    throw asRequestError(error);
  }
}

function read<S extends z.ZodType>(schema: S, params: unknown, code?: ErrorCode): z.output<S> {
  const result = readStrictly(schema, params);
  if (result.ok) return result.data;
  const [problem] = result.problems;
  throw invalidParams(problemSentences(result.problems).join('; '), problem.path.join('.') || undefined, code);
}

/** The verb whose body fields each method accepts. */
const VERB_OF = {
  steering: 'steer',
  inject: 'steer',
  inject_reminder: 'steer',
  remind: 'remind',
  cancel_tool_call: 'cancel_call',
} as const satisfies Record<ExtensionMethod, Verb>;

/**
 * Rejects unknown parameters before the session does, with the names that editors use. An editor cannot set `actor`,
 * and names a call with `toolCallId`, not `call_id`.
 */
function refuseUnknown(params: unknown, verb: 'steer' | 'remind' | 'cancel_call', method: ExtensionMethod): void {
  const own = verb === 'cancel_call' ? Object.keys(CancelCallParams.shape) : Object.keys(MessageParams.shape);
  const ofBody = Object.keys(COMMAND_BODIES[verb].shape).filter((name) => name !== 'actor' && name !== 'call_id');
  const members = [...new Set([...own.filter((name) => name !== '_meta'), ...ofBody])];
  const unknown = Object.keys(params ?? {}).find((name) => name !== '_meta' && !members.includes(name));
  if (unknown === undefined) return;
  const field = cutGraphemes(unknown, 128);
  const message = `unknown field ${JSON.stringify(field)}; ${method} takes ${members.join(', ')}`;
  throw invalidParams(message, field, 'unknown_field');
}

async function send(
  verb: 'steer' | 'remind' | 'followup',
  { sessionId, wait, id, _meta, ...body }: z.output<typeof MessageParams>,
  sessionOf: (id: string) => EditorSession,
): Promise<CommandResult> {
  const options = { wait, id: id ?? newCommandId(), acceptedWithinMs: ACP_BOUNDS.acceptedWithinMs };
  // Waiting for a delivery can take a whole turn. Messages sent meanwhile do not wait for it.
  const { sent } = await sessionOf(sessionId).inOrder(async (session) => ({
    sent: session.wire.send(verb, body as BodyInput<typeof verb>, options),
  }));
  const { commandId, receipt } = await sent;
  const { stage = 'stored', seam, turn, pending_for_next_run } = receipt ?? {};
  return { commandId, stage, seam, turn, ...(pending_for_next_run ? { pendingForNextRun: true } : {}) };
}

async function cancelCall(
  { sessionId, toolCallId, id, _meta, ...how }: z.output<typeof CancelCallParams>,
  sessionOf: (id: string) => EditorSession,
): Promise<CancelResult> {
  const session = await sessionOf(sessionId).session();
  const body = { ...how, call_id: toolCallId } as BodyInput<'cancel_call'>;
  const timeoutMs = (body.timeout_ms ?? BOUNDS.abortGraceMs) + ACP_BOUNDS.cancelSlackMs;
  const options = { id, wait: 'outcome', timeoutMs } as const;
  const { commandId, cancellation } = await session.wire.send('cancel_call', body, options);
  const { outcome, tool, reason } = cancellation as CallCancellation;
  return { commandId, toolCallId, outcome, tool, reason };
}
