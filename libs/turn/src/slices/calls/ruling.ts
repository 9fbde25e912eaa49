/**
 * The ruling on a call: whether it is allowed, denied, or needs a human approval.
 */

import { type PinnedPermissions, type Ruling, ruleOn } from '@coxswain/protocol';
import type { SessionContext } from '../../core/context.ts';
import { rememberedRuling } from '../approvals/remembered.ts';
import type { CallRow } from './state.ts';

/**
 * The ruling on a call:
 * - `allow` after a person has allowed the call
 * - otherwise `deny` before the first provision of the session
 * - otherwise the ruling of the permission rules; if the tool itself requires an approval, `ask` replaces `allow`
 * - if that is `ask`: the action of a matching remembered rule, or else `allow` if a permission_asked hook has allowed it
 *
 * A denied or expired approval is not part of the ruling: `nextToRefuse` (batch.ts) reads it from the row.
 */
export function rulingOn(context: SessionContext, row: CallRow): Ruling {
  if (row.decided?.decision === 'allow') return { action: 'allow', rule: 'user' };
  const permissions = context.pinned?.permissions;
  if (!permissions) return { action: 'deny', rule: 'default' };
  const ruling = ruledOn(permissions, row);
  const remembered = ruling.action === 'ask' ? rememberedRuling(context, row) : null;
  if (remembered) return remembered;
  if (ruling.action === 'ask' && row.granted_by) return { action: 'allow', rule: row.granted_by };
  return ruling;
}

// A cache: guards and `next` evaluate the same rows many times, and rows and rules are never changed in place. Without
// it a batch of 64 under 256 rules took two seconds.
const rulings = new WeakMap<CallRow, { readonly permissions: PinnedPermissions; readonly ruling: Ruling }>();

function ruledOn(permissions: PinnedPermissions, row: CallRow): Ruling {
  const cached = rulings.get(row);
  if (cached?.permissions === permissions) return cached.ruling;
  const ruled = ruleOn(permissions, row.tool, row.args);
  // A tool that requires an approval gets one even if a rule allows the call. A rule that denies is stricter.
  const requiresApproval = row.needs_approval && ruled.action === 'allow';
  const ruling: Ruling = requiresApproval ? { action: 'ask', rule: 'needs_approval' } : ruled;
  rulings.set(row, { permissions, ruling });
  return ruling;
}
