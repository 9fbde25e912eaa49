/** Decisions: what `decide` returns, and the rejections and outcomes that commands get. */
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
 * What becomes of an input. `ignored` leaves no record; `previously` is what a repeated command was told the first time.
 * `deletes`: nothing follows from it here, and the host is to end the journal.
 */
export type Decision =
  | { readonly kind: 'events'; readonly events: readonly SessionEvent[] }
  | { readonly kind: 'rejected'; readonly events: readonly [CommandRejected, ...SessionEvent[]] }
  | { readonly kind: 'ignored'; readonly reason: string; readonly previously?: string; readonly deletes?: true };

/** A decision for these events. */
export function events(...list: readonly SessionEvent[]): Decision {
  return { kind: 'events', events: list };
}

/** An outcome that no open effect waits for (D2). */
export function late(effectId: string): Decision {
  return { kind: 'ignored', reason: `no open effect ${effectId}` };
}

/** Who sent a command, as a member of its events. */
export const by = (input: CommandHead) => (input.actor ? { actor: input.actor } : {});

/** A reason as the end of a sentence: `: reason`, or nothing. */
export function because(reason: string | null | undefined): string {
  return reason ? `: ${reason}` : '';
}

/** A reason, where one is given. */
export const why = (reason: unknown) => (typeof reason === 'string' ? { reason } : {});

/** What a rejection and an outcome repeat of their command. */
export type CommandHead = Pick<CommandInput, 'command_id' | 'verb' | 'actor'>;

/** A command with its body, read or not. */
export type CommandWithBody = CommandHead & { readonly body: object };

/** What a rejection may say beside its code and sentence. */
export interface RejectionDetail {
  readonly field?: string | undefined;
  readonly detail?: JsonObject | undefined;
}

/** A command is rejected: recorded, told to its sender, and nothing else changes. */
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
 * The decision on a command, with the outcome of a control that was refused beside its rejection: who counts controls
 * reads one event type. Those that are carried out say their outcome themselves, some of them later.
 */
export function withOutcome(sessionId: string, input: CommandWithBody, decision: Decision): Decision {
  const control = ControlVerb.safeParse(input.verb);
  if (decision.kind !== 'rejected' || !control.success) return decision;
  const [event] = decision.events;
  const outcome = controlOutcome(sessionId, input, event.code as ErrorCode);
  return { kind: 'rejected', events: [event, outcome] };
}

/** What became of a control: who asked, for what, of whom. */
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
    // Of a body that could not be read nothing is known but whom it was sent to.
    target: typeof aim === 'string' ? aim : sessionId,
    ...by(input),
  };
}
