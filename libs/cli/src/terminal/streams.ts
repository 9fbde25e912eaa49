/** The standard streams of this process, and whether a person uses them. */
import { fstatSync } from 'node:fs';
import { type Flags, usageError, writeNotice, writeOut } from '../line/mod.ts';
import type { LiveView } from '../live-view/mod.ts';
import { jsonView, plainView, type SessionView, type Streams } from './session-view.ts';
import { createStyle, wantsColour } from './style.ts';

/** Standard output and error. */
export const standardStreams: Streams = {
  out: (text) => void writeOut(text),
  err: writeNotice,
};

/**
 * Standard input, for a command that reads it.
 * @throws CliError with exit code 2 for a folder, which Node would read as empty input.
 */
export function standardInput(): NodeJS.ReadStream {
  if (fstatSync(0).isDirectory()) throw usageError('standard input is a folder; give a file or a pipe');
  return process.stdin;
}

/** Whether a person can type and see questions. */
export function isInteractive(): boolean {
  return process.stdin.isTTY === true && process.stdout.isTTY === true && process.env.TERM !== 'dumb';
}

/** A view; `live` is the same view if it is a live one. */
export interface ChosenView {
  readonly view: SessionView;
  readonly live: LiveView | null;
}

/**
 * Chooses the view: `--json` and `--plain` have priority, then the live view on a terminal, else lines.
 * @param lines the view for lines. By default, only the last answer is on stdout.
 */
export async function chooseView(
  flags: Flags,
  env: NodeJS.ProcessEnv,
  lines: typeof plainView = plainView,
): Promise<ChosenView> {
  if (flags.on('json')) return { view: jsonView(standardStreams), live: null };
  if (process.stdout.isTTY && env.TERM !== 'dumb' && !flags.on('plain')) {
    // Imported here, so that a pipe does not load the parser of Markdown.
    const { LiveView } = await import('../live-view/live-view.ts');
    const live = new LiveView(process.stdout, createStyle(wantsColour(process.stdout, env)));
    return { view: live, live };
  }
  return { view: lines(standardStreams, createStyle(wantsColour(process.stderr, env))), live: null };
}
