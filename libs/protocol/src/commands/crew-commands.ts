/**
 * Commands from one session to another. The permissions of the broker allow only hosts to publish them.
 */
import * as z from 'zod';
import { StopReason } from '../journal/events.ts';
import { Failure, ToolResult, Usage } from '../journal/inputs.ts';
import { EffectIdText, InheritedReminder, MessageMode, ParentLink } from '../personas/crews.ts';
import { CallStatus } from '../tools/calls.ts';
import { BOUNDS } from '../wire/bounds.ts';
import { listOf } from '../wire/containers.ts';
import { CommandId, ID_PATTERN } from '../wire/ids.ts';
import { Reason } from '../wire/json.ts';
import { hasVisibleText } from '../wire/unicode-text.ts';
import { type ParsedCommand, StartSettings } from './commands.ts';
import { parseInternal } from './internal-commands.ts';

const id = CommandId.optional();
const Session = z.string().regex(ID_PATTERN);
const Text = z.string().refine(hasVisibleText, { error: 'must not be empty' });

/** Starts a child session. */
export const StartChildBody = z.strictObject({
  ...StartSettings.shape,
  id,
  prompt: Text,
  parent: ParentLink,
  reminders: listOf(InheritedReminder).max(BOUNDS.remindersLiveMax).default([]),
});
export type StartChildBody = z.infer<typeof StartChildBody>;

/** Cancels the first run of a child, because the parent stops the call that started the child. */
export const CancelChildBody = z.strictObject({
  id,
  from: Session,
  effect_id: EffectIdText,
  reason: Reason.optional(),
});
export type CancelChildBody = z.infer<typeof CancelChildBody>;

/** Reports the outcome of a child's first run to its parent. */
export const ChildEndedBody = z.strictObject({
  id,
  session: Session,
  /** The effect that started the child. */
  effect_id: EffectIdText,
  status: CallStatus.extract(['ok', 'error', 'cancelled']),
  stop_reason: StopReason,
  result: ToolResult,
  turns: z.number().int().nonnegative(),
  /** Usage of the child and all its descendants. */
  usage: Usage,
  nano_usd: z.number().int().nonnegative().nullable(),
  error: Failure.optional(),
});
export type ChildEndedBody = z.infer<typeof ChildEndedBody>;

/** A message from one session to another. */
export const MessageBody = z.strictObject({
  id,
  from: Session,
  hops: z.number().int().min(1).max(1_000_000),
  body: Text,
  mode: MessageMode.default('steer'),
});
export type MessageBody = z.infer<typeof MessageBody>;

/** The schema of the body of each verb between sessions. */
export const CREW_BODIES = {
  start_child: StartChildBody,
  cancel_child: CancelChildBody,
  child_ended: ChildEndedBody,
  message: MessageBody,
} as const;
/** A verb between sessions. */
export type CrewVerb = keyof typeof CREW_BODIES;

/** Whether a verb is for commands between sessions. */
export function isCrewVerb(verb: string): verb is CrewVerb {
  return Object.hasOwn(CREW_BODIES, verb);
}

/** Parses a published command between sessions. Never throws. */
export function parseCrewCommand(verb: CrewVerb, payload: Uint8Array): ParsedCommand {
  return parseInternal(verb, CREW_BODIES[verb] as z.ZodType<{ id?: CommandId | undefined }, unknown>, payload);
}
