/** Rejections: what a command is told that cannot be. */
import type { CommandInput, ControlStatus, ControlVerb, ErrorCode, JsonObject, SessionEvent } from '@coxswain/protocol';
import type { Decision } from './decision.ts';

/** What a rejection may say beside its code and sentence. */
export interface RejectionDetail {
  readonly field?: string | undefined;
  readonly detail?: JsonObject | undefined;
}

/** A command is rejected: recorded, told to its sender, and nothing else changes. */
export function reject(input: CommandInput, code: ErrorCode, message: string, extra: RejectionDetail = {}): Decision {
  return { kind: 'rejected', events: [rejection(input, code, message, extra)] };
}

/**
 * A control is rejected. Its sender is told the code, and its outcome stands in the journal like that of every control:
 * who asked what of whom, and what became of it.
 */
export function rejectControl(
  input: CommandInput,
  target: string,
  code: ErrorCode & ControlStatus,
  message: string,
  extra: RejectionDetail = {},
): Decision {
  return {
    kind: 'rejected',
    events: [
      rejection(input, code, message, extra),
      {
        type: 'control_outcome',
        control: input.verb as ControlVerb,
        command_id: input.command_id,
        status: code,
        target,
        ...(input.actor ? { actor: input.actor } : {}),
      },
    ],
  };
}

function rejection(
  input: CommandInput,
  code: ErrorCode,
  message: string,
  { field, detail }: RejectionDetail,
): Extract<SessionEvent, { type: 'command_rejected' }> {
  return {
    type: 'command_rejected',
    command_id: input.command_id,
    verb: input.verb,
    code,
    message,
    ...(field === undefined ? {} : { field }),
    ...(detail ? { detail } : {}),
  };
}
