/**
 * Decisions, the return values of `decide`; and the events for rejected commands and for outcomes of controls. A control is
 * a command with a verb of `ControlVerb`.
 */
import {
  type CommandInput,
  type ControlStatus,
  ControlVerb,
  type ErrorCode,
  type EventOf,
  type JsonObject,
  type SessionEvent,
} from '@coxswain/protocol';

type CommandRejected = Extract<SessionEvent, { type: 'command_rejected' }>;

/**
 * The decision on an input. `events` gets a record. For `rejected`, session-intake.ts in libs/session decides whether
 * it gets one. `ignored` gets none; its `previously` is the first outcome of a repeated command, `accepted` or its
 * rejection code. `deletion`: the host must end the journal.
 */
export type Decision =
  | { readonly kind: 'events'; readonly events: readonly SessionEvent[] }
  | { readonly kind: 'rejected'; readonly events: readonly [CommandRejected, ...SessionEvent[]] }
  | { readonly kind: 'ignored'; readonly reason: string; readonly previously?: string }
  | { readonly kind: 'deletion' };

/** A decision for these events. */
export function events(...list: readonly SessionEvent[]): Decision {
  return { kind: 'events', events: list };
}

/** The decision on an outcome whose effect is not open (DECIDE-2, decide.ts). */
export function late(effectId: string): Decision {
  return { kind: 'ignored', reason: `no open effect ${effectId}` };
}

/** The member `actor` of a command's events, if the command names its sender. */
export const actorMember = (input: CommandHead) => (input.actor ? { actor: input.actor } : {});

/** A reason as the end of a sentence: `: <reason>`, or nothing. */
export function reasonSuffix(reason: string | null | undefined): string {
  return reason ? `: ${reason}` : '';
}

/** The member `reason`, if a reason is given. */
export const reasonMember = (reason: unknown) => (typeof reason === 'string' ? { reason } : {});

/** The members of a command that its rejection or its `control_outcome` repeats. */
export type CommandHead = Pick<CommandInput, 'command_id' | 'verb' | 'actor'>;

/** A command with its body, typed or not. */
export type CommandWithBody = CommandHead & { readonly body: object };

/** Optional members of a rejection, in addition to code and message. */
export interface RejectionDetail {
  readonly field?: string | undefined;
  readonly detail?: JsonObject | undefined;
}

/**
 * The decision that rejects a command. The session continues as if the command had not arrived, but remembers its id if
 * the rejection gets a record.
 */
export function reject(
  input: CommandHead,
  code: ErrorCode,
  message: string,
  more?: RejectionDetail,
): Extract<Decision, { kind: 'rejected' }> {
  return { kind: 'rejected', events: [rejected(input, code, message, more)] };
}

/** The event of a rejection. */
export function rejected(
  { command_id, verb }: CommandHead,
  code: ErrorCode,
  message: string,
  { field, detail }: RejectionDetail = {},
): EventOf<'command_rejected'> {
  return {
    type: 'command_rejected',
    command_id,
    verb,
    code,
    message,
    ...(field === undefined ? {} : { field }),
    ...(detail ? { detail } : {}),
  };
}

/**
 * Adds a `control_outcome` to the rejection of a control; returns any other decision unchanged. Readers of a journal
 * then find all outcomes of controls in one event type: an accepted control has it in its own record or in a later one.
 */
export function withOutcome(sessionId: string, input: CommandWithBody, decision: Decision): Decision {
  const control = ControlVerb.safeParse(input.verb);
  if (decision.kind !== 'rejected' || !control.success) return decision;
  const [event] = decision.events;
  const outcome = controlOutcome(sessionId, input, event.code as ErrorCode);
  return { kind: 'rejected', events: [event, outcome] };
}

/** The `control_outcome` of a control. Its target is the call or command that the body names, or else the session. */
export function controlOutcome(
  sessionId: string,
  input: CommandWithBody,
  status: ControlStatus,
): EventOf<'control_outcome'> {
  const { body } = input;
  const aim = 'call_id' in body ? body.call_id : 'command_id' in body ? body.command_id : undefined;
  return {
    type: 'control_outcome',
    control: input.verb as ControlVerb,
    command_id: input.command_id,
    status,
    // The body of a rejected control can be unparsed.
    target: typeof aim === 'string' ? aim : sessionId,
    ...actorMember(input),
  };
}
