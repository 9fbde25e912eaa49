/** Which call may start, which is refused, and which waits for a person. */

import { type PinnedPermissions, type Ruling, ruleOn } from '@coxswain/protocol';
import type { SessionContext } from '../../core/context.ts';
import { rememberedRuling } from '../approvals/remembered.ts';
import { waitsForBatch } from '../handoff/handoff.ts';
import { hooksFor } from '../hooks/registrations.ts';
import type { CallAt, CallRow } from './state.ts';
import { callRow, isSequential } from './table.ts';

/** What the rules, a hook's grant and a person's decision together say of a call. */
export function rulingOn(context: SessionContext, row: CallRow): Ruling {
  if (row.decided?.decision === 'allow') return { action: 'allow', rule: 'user' };
  const permissions = context.pinned?.permissions;
  if (!permissions) return { action: 'deny', rule: 'default' };
  const ruling = ruledOn(permissions, row);
  // A hook, and what was decided in advance, can answer a question; neither can overrule a rule that refuses.
  const known = ruling.action === 'ask' ? rememberedRuling(context, row) : null;
  if (known) return known;
  if (ruling.action === 'ask' && row.granted_by) return { action: 'allow', rule: row.granted_by };
  return ruling;
}

// Guards and `next` ask the same of every row again and again; a row and a persona's rules are never changed in place,
// so the first answer is kept with the row. A batch of 64 under 256 rules took two seconds without this.
const rulings = new WeakMap<CallRow, { readonly permissions: PinnedPermissions; readonly ruling: Ruling }>();

function ruledOn(permissions: PinnedPermissions, row: CallRow): Ruling {
  const known = rulings.get(row);
  if (known?.permissions === permissions) return known.ruling;
  const ruled = ruleOn(permissions, row.tool, row.args);
  // The tool's own question stands whatever rule allows the call; a rule that refuses it is stricter.
  const asks = row.needs_approval && ruled.action === 'allow';
  const ruling: Ruling = asks ? { action: 'ask', rule: 'needs_approval' } : ruled;
  rulings.set(row, { permissions, ruling });
  return ruling;
}

/** The next call, in call order, that PreToolUse hooks must see, this one aside. */
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

/** The next call, in call order, of which the rules say `ask` and that permission_asked hooks must see, this one aside. */
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

/** Whether a call may start as far as rules and people are concerned. */
function isAllowed(context: SessionContext, row: CallRow): row is CallAt<'proposed' | 'allowed'> {
  return (
    row.status === 'allowed' ||
    (row.status === 'proposed' && !row.problem && !row.decided && rulingOn(context, row).action === 'allow')
  );
}

/** The next call that may start now: in call order, within the limit on parallel calls; `except` counts as ended. */
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
    // In a sequential batch a call that waits for a person holds back those behind it.
    else if (sequential && row.status === 'parked') heldBack = true;
    else if (!candidate && !heldBack && isAllowed(context, row) && !waitsForBatch(context, row, except))
      candidate = row;
  }
  return busy < limit ? candidate : undefined;
}

/** Whether the end of a call that ran makes room for one that was held back. */
export function makesRoom(context: SessionContext, callId: string): boolean {
  const row = callRow(context, callId);
  return (row?.status === 'running' || row?.status === 'returned') && nextToStart(context, callId) !== undefined;
}

/** Whether a question about a call that ran lets one go on that was held back. In a sequential batch it holds the rest back. */
export function goesOnWithout(context: SessionContext, callId: string): boolean {
  return callRow(context, callId)?.status === 'running' && !isSequential(context) && makesRoom(context, callId);
}

/** The next call that rules or a person have refused, and that has no result yet. */
export function nextToRefuse(context: SessionContext): CallAt<'proposed'> | undefined {
  return context.calls.find(
    (row): row is CallAt<'proposed'> =>
      row.status === 'proposed' &&
      !row.problem &&
      (row.decided?.decision === 'deny' || (!row.decided && rulingOn(context, row).action === 'deny')),
  );
}

/** The next call that needs a person. */
export function nextToPark(context: SessionContext): CallAt<'proposed'> | undefined {
  return context.calls.find(
    (row): row is CallAt<'proposed'> =>
      row.status === 'proposed' && !row.problem && !row.decided && rulingOn(context, row).action === 'ask',
  );
}
