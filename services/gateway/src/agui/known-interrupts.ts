/** Checks that the interrupts which an AG-UI request answers exist in its session. */
import type { BusSession } from '@coxswain/client';
import type { Principal } from '../auth/mod.ts';
import { GATEWAY_BOUNDS, type GatewayContext, Problem } from '../context/mod.ts';
import type { InterruptAnswer } from './run-commands.ts';
import { SUSPENDED_ID } from './run-end.ts';

/**
 * Finds an answer to an interrupt that never existed in the session. An interrupt that was settled by another client is
 * known: its answer is late, but valid. Reads the journal only if an interrupt is not pending now.
 * @param principal the client that answers.
 * @param signal ends the wait for a slot.
 * @returns a Problem (`call_unknown` or `not_suspended`) for the first unknown interrupt, for AG-UI's `RUN_ERROR`; null
 *   if all are known.
 * @throws errors of reading the session; Problem `gateway_busy`; the signal's reason.
 */
export async function findUnknownInterrupt(
  { expensiveReads, stateReads }: Pick<GatewayContext, 'expensiveReads' | 'stateReads'>,
  session: Pick<BusSession, 'wire' | 'journal'>,
  principal: Principal,
  answers: readonly InterruptAnswer[],
  signal: AbortSignal,
): Promise<Problem | null> {
  if (answers.length === 0) return null;
  const { approvals, suspended } = await stateReads.run(principal, () => session.wire.stateAfter(0), signal);
  const unknown = new Map(answers.map((answer) => [callOf(answer), answer.interruptId]));
  for (const { call_id } of approvals) unknown.delete(call_id);
  if (suspended !== null) unknown.delete(null);
  if (unknown.size > 0)
    await expensiveReads.run(
      principal,
      async () => {
        for await (const { record } of session.journal({ atOnce: GATEWAY_BOUNDS.journalReadAhead })) {
          for (const event of record.events) {
            if (event.type === 'approval_requested') unknown.delete(event.call_id);
            else if (event.type === 'suspended') unknown.delete(null);
          }
          if (unknown.size === 0) return;
        }
      },
      signal,
    );
  const [interruptId] = unknown.values();
  if (interruptId === undefined) return null;
  const code = interruptId === SUSPENDED_ID ? 'not_suspended' : 'call_unknown';
  return new Problem(code, `resume: the session has no interrupt "${interruptId}"; no command was sent to it`);
}

/** The id of the call that an answer decides; null for the interrupt of a suspended session. */
function callOf({ command }: InterruptAnswer): string | null {
  return command?.verb === 'approve' ? command.body.call_id : null;
}
