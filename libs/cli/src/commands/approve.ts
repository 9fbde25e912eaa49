/** `cox approve`. */
import type { CommandRun } from '../line/command-spec.ts';
import { decide } from '../run/decide.ts';

/** Approves a pending call. */
export const run: CommandRun = (invocation) => decide(invocation, 'allow');
