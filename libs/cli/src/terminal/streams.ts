/** What this process reads from and writes to, and whether somebody sits there. */
import { fstatSync } from 'node:fs';
import { usageError } from '../line/cli-error.ts';
import type { Flags } from '../line/flags.ts';
import { writeNotice, writeOut } from '../line/output.ts';
import type { LiveView } from '../live-view/live-view.ts';
import { jsonView, plainView, type SessionView, type Streams } from './session-view.ts';
import { createStyle, wantsColour } from './style.ts';

/** Standard output and error. */
export const standardStreams: Streams = {
  out: (text) => void writeOut(text),
  err: writeNotice,
};

/**
 * Standard input, for a command that was told to read it.
 * @throws CliError for a folder, which Node would give as an input that is empty.
 */
export function standardInput(): NodeJS.ReadStream {
  if (fstatSync(0).isDirectory()) throw usageError('standard input is a folder; give a file or a pipe');
  return process.stdin;
}

/** Whether somebody can type and see what is asked. */
export function isInteractive(): boolean {
  return process.stdin.isTTY === true && process.stdout.isTTY === true && process.env.TERM !== 'dumb';
}

/** A view, and the same one as a live view where it is one. */
export interface ChosenView {
  readonly view: SessionView;
  readonly live: LiveView | null;
}

/**
 * The view that fits what the process writes to: `--json` and `--plain` first, then live on a terminal, else lines.
 * @param lines how lines are shown: by default the last answer alone is on stdout.
 */
export async function chooseView(
  flags: Flags,
  env: NodeJS.ProcessEnv,
  lines: typeof plainView = plainView,
): Promise<ChosenView> {
  if (flags.on('json')) return { view: jsonView(standardStreams), live: null };
  if (process.stdout.isTTY && env.TERM !== 'dumb' && !flags.on('plain')) {
    // Loaded here: a pipe does not pay for the parser of Markdown.
    const { LiveView } = await import('../live-view/live-view.ts');
    const live = new LiveView(process.stdout, createStyle(wantsColour(process.stdout, env)));
    return { view: live, live };
  }
  return { view: lines(standardStreams, createStyle(wantsColour(process.stderr, env))), live: null };
}
