/** What goes beyond the protocol: saying something to a session while it works, and ending one of its calls. */

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

/** What is the editor's in the parameters; the rest is a command's body, which the session's own rules check. */
const ABOUT = {
  sessionId: z.string(),
  _meta: z.record(z.string(), z.unknown()).nullish(),
  id: z.string().optional(),
};
const Saying = z.looseObject({
  ...ABOUT,
  /** How far it is followed. */
  wait: z.enum(['stored', 'accepted', 'delivered']).default('accepted'),
});
const CancellingACall = z.looseObject({
  ...ABOUT,
  toolCallId: z.string().min(1).max(256),
  // The wait for the outcome is computed from it.
  timeout_ms: COMMAND_BODIES.cancel_call.shape.timeout_ms,
});
/** The modes of `inject`, which has one more than a steer. */
const InjectMode = z.object({ mode: z.enum([...Mode.options, 'steer', 'queue']).optional() });

/** A method of ours, by its bare name. */
export type ExtensionMethod = 'steering' | 'inject' | 'inject_reminder' | 'remind' | 'cancel_tool_call';

/** All of them, in the order in which they are advertised. */
export const EXTENSION_METHODS: readonly ExtensionMethod[] = [
  'steering',
  'inject',
  'inject_reminder',
  'remind',
  'cancel_tool_call',
];

/** What is told of a command. */
export interface CommandTold {
  readonly commandId: string;
  readonly stage: Receipt['stage'] | 'stored';
  readonly seam?: string | undefined;
  readonly turn?: number | undefined;
  /** It waits for the session's next run. */
  readonly pendingForNextRun?: boolean | undefined;
}

/** How the cancelling of a call went. */
export interface CancelTold {
  readonly commandId: string;
  readonly toolCallId: string;
  readonly outcome: CancelOutcome;
  readonly tool: string | null;
  readonly reason: string | null;
}

/**
 * Carries a method of ours out.
 * @param sessionOf a session that the editor has open. @throws RequestError where it has none of the id.
 */
export async function extend(
  method: ExtensionMethod,
  params: unknown,
  sessionOf: (id: string) => EditorSession,
): Promise<CommandTold | CancelTold> {
  try {
    const verb = VERB_OF[method];
    refuseUnknown(params, verb, method);
    if (method === 'cancel_tool_call') return await cancelCall(read(CancellingACall, params), sessionOf);
    const said = read(Saying, params);
    if (method === 'remind') return await send('remind', said, sessionOf);
    if (method === 'steering') return await send('steer', said, sessionOf);
    const { mode } = read(InjectMode, said, 'invalid_mode');
    const { mode: _, ...others } = said;
    return mode === 'queue' ? await send('followup', others, sessionOf) : await send('steer', said, sessionOf);
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

/** Whose body the parameters have, beside what is the editor's. */
const VERB_OF = {
  steering: 'steer',
  inject: 'steer',
  inject_reminder: 'steer',
  remind: 'remind',
  cancel_tool_call: 'cancel_call',
} as const satisfies Record<ExtensionMethod, Verb>;

/** Before the session's own rules do it, by the names that a command has: who acts is not for an editor to say, and a call has another one. */
function refuseUnknown(params: unknown, verb: 'steer' | 'remind' | 'cancel_call', method: ExtensionMethod): void {
  const own = verb === 'cancel_call' ? Object.keys(CancellingACall.shape) : Object.keys(Saying.shape);
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
  { sessionId, wait, id, _meta, ...body }: z.output<typeof Saying>,
  sessionOf: (id: string) => EditorSession,
): Promise<CommandTold> {
  const options = { wait, id: id ?? newCommandId(), acceptedWithinMs: ACP_BOUNDS.acceptedWithinMs };
  // Waiting for a delivery may take as long as a turn: what is sent meanwhile does not wait for it.
  const { sent } = await sessionOf(sessionId).inOrder(async (session) => ({
    sent: session.wire.send(verb, body as BodyInput<typeof verb>, options),
  }));
  const { commandId, receipt } = await sent;
  const { stage = 'stored', seam, turn, pending_for_next_run } = receipt ?? {};
  return { commandId, stage, seam, turn, ...(pending_for_next_run ? { pendingForNextRun: true } : {}) };
}

async function cancelCall(
  { sessionId, toolCallId, id, _meta, ...how }: z.output<typeof CancellingACall>,
  sessionOf: (id: string) => EditorSession,
): Promise<CancelTold> {
  const session = await sessionOf(sessionId).session();
  const body = { ...how, call_id: toolCallId } as BodyInput<'cancel_call'>;
  const timeoutMs = (body.timeout_ms ?? BOUNDS.abortGraceMs) + ACP_BOUNDS.cancelSlackMs;
  const options = { id, wait: 'outcome', timeoutMs } as const;
  const { commandId, cancellation } = await session.wire.send('cancel_call', body, options);
  const { outcome, tool, reason } = cancellation as CallCancellation;
  return { commandId, toolCallId, outcome, tool, reason };
}
