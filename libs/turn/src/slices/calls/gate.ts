/**
 * Decides which call may start, which is denied, and which needs a human approval.
 */

import { type PinnedPermissions, type Ruling, ruleOn } from '@coxswain/protocol';
import type { SessionContext } from '../../core/context.ts';
import { rememberedRuling } from '../approvals/remembered.ts';
import { waitsForBatch } from '../handoff/handoff.ts';
import { hooksFor } from '../hooks/registrations.ts';
import type { CallAt, CallRow } from './state.ts';
import { callRow, isSequential } from './table.ts';

/**
 * The combined decision about a call: an approval, the rules and the tool's `needs_approval`, remembered rules, and a
 * hook's permission. A denied or expired approval is not part of it: {@link nextToRefuse} reads it from the row.
 */
export function rulingOn(context: SessionContext, row: CallRow): Ruling {
  if (row.decided?.decision === 'allow') return { action: 'allow', rule: 'user' };
  const permissions = context.pinned?.permissions;
  if (!permissions) return { action: 'deny', rule: 'default' };
  const ruling = ruledOn(permissions, row);
  // Remembered rules and hooks can answer `ask`. They cannot overrule a rule that denies.
  const known = ruling.action === 'ask' ? rememberedRuling(context, row) : null;
  if (known) return known;
  if (ruling.action === 'ask' && row.granted_by) return { action: 'allow', rule: row.granted_by };
  return ruling;
}

// A cache: guards and `next` evaluate the same rows many times, and rows and rules are never changed in place. Without
// it a batch of 64 under 256 rules took two seconds.
const rulings = new WeakMap<CallRow, { readonly permissions: PinnedPermissions; readonly ruling: Ruling }>();

function ruledOn(permissions: PinnedPermissions, row: CallRow): Ruling {
  const known = rulings.get(row);
  if (known?.permissions === permissions) return known.ruling;
  const ruled = ruleOn(permissions, row.tool, row.args);
  // A tool that requires an approval gets one even if a rule allows the call. A rule that denies is stricter.
  const asks = row.needs_approval && ruled.action === 'allow';
  const ruling: Ruling = asks ? { action: 'ask', rule: 'needs_approval' } : ruled;
  rulings.set(row, { permissions, ruling });
  return ruling;
}

/** The next call, in call order, that PreToolUse hooks must check. It skips the call `except`. */
export function nextToVet(context: SessionContext, except?: string): CallRow | undefined {
  if (context.hooks.length === 0) return undefined;
  return context.calls.find(
    (row) =>
      row.status === 'proposed' &&
      !row.vetted &&
      row.call_id !== except &&
      hooksFor(context, 'PreToolUse', row.tool).length > 0,
  );
}

/** The next call, in call order, with the ruling `ask` that permission_asked hooks must check. It skips the call `except`. */
export function nextToAsk(context: SessionContext, except?: string): CallRow | undefined {
  if (context.hooks.length === 0) return undefined;
  return context.calls.find(
    (row) =>
      row.status === 'proposed' &&
      !row.asked &&
      row.call_id !== except &&
      hooksFor(context, 'permission_asked', row.tool).length > 0 &&
      rulingOn(context, row).action === 'ask',
  );
}

/** Whether rules and people allow a call to start. */
function isAllowed(context: SessionContext, row: CallRow): row is CallAt<'proposed' | 'allowed'> {
  return (
    row.status === 'allowed' ||
    (row.status === 'proposed' && !row.problem && !row.decided && rulingOn(context, row).action === 'allow')
  );
}

/** The next call that may start now: in call order, within the limit on parallel calls. `except` counts as ended. */
export function nextToStart(context: SessionContext, except?: string): CallAt<'proposed' | 'allowed'> | undefined {
  if (context.aborting) return undefined;
  const sequential = isSequential(context);
  const limit = sequential ? 1 : (context.pinned?.parallel_calls ?? 1);
  let busy = 0;
  let candidate: CallAt<'proposed' | 'allowed'> | undefined;
  let heldBack = false;
  for (const row of context.calls) {
    if (row.call_id === except || row.status === 'ended') continue;
    if (row.status === 'running' || row.status === 'returned') busy++;
    // In a sequential batch a pending approval delays the later calls.
    else if (sequential && row.status === 'parked') heldBack = true;
    else if (!candidate && !heldBack && isAllowed(context, row) && !waitsForBatch(context, row, except))
      candidate = row;
  }
  return busy < limit ? candidate : undefined;
}

/** Whether the end of a call lets a deferred one start. */
export function makesRoom(context: SessionContext, callId: string): boolean {
  const row = callRow(context, callId);
  return (row?.status === 'running' || row?.status === 'returned') && nextToStart(context, callId) !== undefined;
}

/**
 * Whether the question to a person about the unknown outcome of a call lets a deferred call start. In a sequential batch
 * the question delays the other calls.
 */
export function goesOnWithout(context: SessionContext, callId: string): boolean {
  return callRow(context, callId)?.status === 'running' && !isSequential(context) && makesRoom(context, callId);
}

/** The next call that rules, a person, a hook or an expired approval denied, without a result so far. */
export function nextToRefuse(context: SessionContext): CallAt<'proposed'> | undefined {
  return context.calls.find(
    (row): row is CallAt<'proposed'> =>
      row.status === 'proposed' &&
      !row.problem &&
      (row.decided?.decision === 'deny' || (!row.decided && rulingOn(context, row).action === 'deny')),
  );
}

/** The next call that needs a human approval. */
export function nextToPark(context: SessionContext): CallAt<'proposed'> | undefined {
  return context.calls.find(
    (row): row is CallAt<'proposed'> =>
      row.status === 'proposed' && !row.problem && !row.decided && rulingOn(context, row).action === 'ask',
  );
}
