/** `cox approve`. */
import type { CommandRun } from '../line/command-spec.ts';
import { decide } from '../run/decide.ts';

/** Lets a waiting call run. */
export const run: CommandRun = (invocation) => decide(invocation, 'allow');
