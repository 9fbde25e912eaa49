/**
 * The changes of the context by the event `control_outcome`: a dispatch table over the slices, by the verb of the control.
 */

import type { ControlVerb } from '@coxswain/protocol';
import { editAnswered } from '../slices/approvals/edited-calls.ts';
import { callCancelledAtOnce } from '../slices/calls/transitions.ts';
import { revokedOrReplaced } from '../slices/injections/queue.ts';
import { runCancelled } from '../slices/runs/ending.ts';
import { resumeTaken, suspendLapsed } from '../slices/suspension/requests.ts';
import { noteCommand } from './command-memory.ts';
import type { SessionContext } from './context.ts';
import type { Placed } from './journal-place.ts';

type Change = Partial<SessionContext>;

/** The changes by the outcome of a control. One of them is always the id of its command in the memory of commands. */
export function controlled(context: SessionContext, event: Placed<'control_outcome'>): Change {
  const change = CONTROLS[event.control]?.(context, event) ?? {};
  return { ...change, ...noteCommand({ ...context, ...change }, event.command_id) };
}

/** The outcome of a control without a row changes only the memory of commands. */
const CONTROLS: {
  readonly [control in ControlVerb]?: (context: SessionContext, event: Placed<'control_outcome'>) => Change;
} = {
  approve: editAnswered,
  cancel: runCancelled,
  cancel_call: callCancelledAtOnce,
  suspend: suspendLapsed,
  resume: resumeTaken,
  revoke: revokedOrReplaced,
  replace: revokedOrReplaced,
};
