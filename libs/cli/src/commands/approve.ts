/** `cox approve`. */
import type { CommandRun } from '../line/mod.ts';
import { decide } from '../run/mod.ts';

/** Approves a pending call. */
export const run: CommandRun = (invocation) => decide(invocation, 'allow');
