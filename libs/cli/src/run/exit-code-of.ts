/** Exit codes of runs, keyed by stop reason. */
import type { StopReason } from '@coxswain/protocol';
import { EXIT, type ExitCode } from '../line/mod.ts';

const CODES: Readonly<Record<StopReason, ExitCode>> = {
  end_turn: EXIT.ok,
  terminated: EXIT.ok,
  stop_condition: EXIT.ok,
  error: EXIT.error,
  cancelled: EXIT.cancelled,
  max_turns: EXIT.capOrBudget,
  budget_exceeded: EXIT.capOrBudget,
  user_prompt_submit_blocked: EXIT.blocked,
};

/** The exit code of a run. */
export function exitCodeOf(reason: StopReason): ExitCode {
  return CODES[reason];
}
