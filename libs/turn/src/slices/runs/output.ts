/**
 * Structured output: a final answer that does not fit the session's output schema is repaired by further turns. After
 * the maximum of repairs the run fails. If no turn is left for a repair, the run ends by its cap. The host validates an
 * answer (`streamAnswer` in libs/session), and `message_complete` has the result.
 *
 * OUTPUT-1  The host checks each complete answer without calls. Only a final answer can be rejected: one in the last
 *     declared step, or in a run without steps, after which the last seam of the turn delivers no message.
 * OUTPUT-2  A repair is a direct message with the problems, and one more turn. It counts against `max_turns` and the
 *     budgets. Repairs are counted from the last prompt, the last follow-up or the last idling of a daemon.
 * OUTPUT-3  A repair comes before a queued follow-up, and overrides a stop condition that is true.
 */

import { type EventOf, type Failure, type SessionEvent, userText } from '@coxswain/protocol';
import type { SessionContext } from '../../core/context.ts';
import type { OutputProgress } from './state.ts';

/** The member `seam` of a repair message in the journal. No seam delivers it: it follows the rejection at once. */
export const OUTPUT_SEAM = 'output';

const NOTHING: OutputProgress = { check: null, rejected: false, told: false, repairs: 0 };

/**
 * Whether the open turn's answer is final and does not fit the schema.
 * @param delivered the number of messages that the last seam of the turn delivers: with one the answer is not final.
 */
export function needsRepair(context: SessionContext, delivered = context.delivered_at_end): boolean {
  const { output, batch_open, cut_short } = context;
  if (!output?.check || 'value' in output.check || context.pinned?.output_repairs === undefined) return false;
  return !batch_open && !cut_short && delivered === 0 && isInLastStep(context);
}

function isInLastStep({ step, pinned }: SessionContext): boolean {
  const steps = pinned?.steps?.length ?? 0;
  if (step === null) return true;
  return step.open ? step.index === steps - 1 : step.index >= steps;
}

/**
 * The next event for an answer that {@link needsRepair}, at the end of its turn. First its rejection. Once that is
 * recorded, a repair message to the model, or the failure of the run after the last repair. Then null.
 * @param isCapped whether no further turn may follow: then null instead of a repair message.
 */
export function outputRejection(context: SessionContext, isCapped: boolean): SessionEvent | null {
  const { output, pinned, turn } = context;
  if (!output?.check || 'value' in output.check) return null;
  const { problems } = output.check;
  const most = pinned?.output_repairs ?? 0;
  if (!output.rejected) return { type: 'output_rejected', turn, repairs: output.repairs, repairs_max: most, problems };
  if (output.told) return null;
  if (output.repairs >= most)
    return { type: 'run_failed', source: 'output', error: failure(problems, output.repairs), stop_reason: 'error' };
  if (isCapped) return null;
  return {
    type: 'message_injected',
    command_id: `output:${turn}`,
    origin: 'direct',
    seam: OUTPUT_SEAM,
    turn,
    message: userText(
      [
        'Your answer does not fit the output schema:',
        ...problems.map((problem) => `- ${problem}`),
        'Answer again with the complete JSON value and nothing else.',
      ].join('\n'),
    ),
  };
}

function failure(problems: readonly string[], repairs: number): Failure {
  const after = repairs === 0 ? '' : ` after ${repairs} ${repairs === 1 ? 'repair' : 'repairs'}`;
  const message = `the final answer does not fit the output schema${after}: ${problems.join('; ')}`;
  return { code: 'output_invalid', message };
}

/** The member `output` of `agent_end`: the value of the newest turn's answer, if it is complete, has no calls and fits the schema. */
export function outputOfRun({ output }: SessionContext): Pick<EventOf<'agent_end'>, 'output'> {
  return output?.check && 'value' in output.check ? { output: output.check.value } : {};
}

/** The progress after an event; the same object if the event does not affect it. */
export function outputAfter(output: OutputProgress | null, event: SessionEvent): OutputProgress | null {
  switch (event.type) {
    case 'message_complete':
      return event.output || output ? { ...(output ?? NOTHING), check: event.output ?? null } : null;
    case 'output_rejected':
      return { ...(output ?? NOTHING), rejected: true };
    case 'turn_start':
      return output && { ...NOTHING, repairs: output.repairs };
    case 'message_injected':
      if (output && event.seam === OUTPUT_SEAM) return { ...output, told: true, repairs: output.repairs + 1 };
      return output && event.origin === 'followup' ? { ...output, repairs: 0 } : output;
    case 'prompt_received':
      return null;
    case 'loop_checkpoint':
      return output && event.kind === 'daemon_idle_pre' ? { ...output, repairs: 0 } : output;
    default:
      return output;
  }
}
