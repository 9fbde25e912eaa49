/** `cox deny`. */
import type { CommandRun } from '../line/command-spec.ts';
import { decide } from '../run/decide.ts';

/** Denies a pending call. */
export const run: CommandRun = (invocation) => decide(invocation, 'deny');
