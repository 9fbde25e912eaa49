/** Exit codes and errors of the command line. */
import type { ErrorCode } from '@coxswain/protocol';

/** Exit codes. */
export const EXIT = {
  /** `end_turn`, `terminated`, `stop_condition`, or success of a command without a run. */
  ok: 0,
  error: 1,
  usage: 2,
  cancelled: 3,
  capOrBudget: 4,
  blocked: 5,
  approvalNeeded: 6,
  detached: 130,
} as const;
/** One of {@link EXIT}. */
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** A failure that is printed as one sentence without a stack. It determines the exit code. */
export class CliError extends Error {
  override readonly name = 'CliError';
  readonly exitCode: ExitCode;
  readonly code: ErrorCode;

  constructor(exitCode: ExitCode, code: ErrorCode, message: string) {
    super(message);
    this.exitCode = exitCode;
    this.code = code;
  }
}

/** An error in the command line itself, with exit code 2. */
export function usageError(message: string): CliError {
  return new CliError(EXIT.usage, 'usage', message);
}
