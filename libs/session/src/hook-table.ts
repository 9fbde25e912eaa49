/** The table of registrations as a session's journal holds it: in the order in which they are asked, and known by a fingerprint. */
import type { Hooks } from '@coxswain/ports';
import {
  canonicalJson,
  type Failure,
  HookTable,
  inAskingOrder,
  problemSentences,
  readStrictly,
  type TenantId,
} from '@coxswain/protocol';
import { sha256Hex } from './seal-record.ts';

/** A table that sessions may see. */
export interface SeenTable {
  readonly table: HookTable;
  readonly fingerprint: string;
}

/** The host's table for a tenant now; or why no session may see it: too many registrations, or one that is none. */
export function seenTable(hooks: Hooks, tenant: TenantId): SeenTable | Failure {
  const parsed = readStrictly(HookTable, inAskingOrder(hooks.table(tenant)));
  // To leave some out would be to let through what they guard.
  if (!parsed.ok) {
    const told = problemSentences(parsed.problems).join('; ');
    return { code: 'hooks_invalid', message: `the table of hooks cannot be used: ${told}` };
  }
  return { table: parsed.data, fingerprint: sha256Hex(canonicalJson(parsed.data)) };
}
