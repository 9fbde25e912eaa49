/** `cox deny`. */
import type { CommandRun } from '../line/mod.ts';
import { decide } from '../run/mod.ts';

/** Denies a pending call. */
export const run: CommandRun = (invocation) => decide(invocation, 'deny');
