/** `cox demo`. */
import { playDemo } from '../demo/mod.ts';
import type { CommandRun } from '../line/mod.ts';

/** Plays the demo. */
export const run: CommandRun = playDemo;
