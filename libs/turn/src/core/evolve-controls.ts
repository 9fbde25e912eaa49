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
import type { Placed } from './place.ts';

type Change = Partial<SessionContext>;

/** Applies the outcome of a control. Its command is always remembered. */
export function controlled(context: SessionContext, event: Placed<'control_outcome'>): Change {
  const change = CONTROLS[event.control]?.(context, event) ?? {};
  return { ...change, ...noteCommand({ ...context, ...change }, event.command_id) };
}

/** Outcomes of controls without a row change nothing else. */
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
