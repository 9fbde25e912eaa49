/** `cox demo`. */
import { playDemo } from '../demo/play-demo.ts';
import type { CommandRun } from '../line/command-spec.ts';

/** Plays the demo. */
export const run: CommandRun = playDemo;
