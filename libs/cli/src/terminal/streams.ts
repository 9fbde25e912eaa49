/** What this process reads from and writes to, and whether somebody sits there. */
import { fstatSync } from 'node:fs';
import { usageError } from '../line/cli-error.ts';
import { writeNotice, writeOut } from '../line/output.ts';
import { Screen } from './screen.ts';
import { jsonView, plainView, type SessionView, type Streams, terminalView } from './session-view.ts';
import { createStyle, type Style, wantsColour } from './style.ts';

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

/** A view, and the screen under it where it is one on a terminal. */
export interface ChosenView {
  readonly view: SessionView;
  readonly screen: Screen | null;
  readonly style: Style;
}

/** The view that fits what the process writes to. */
export function chooseView(json: boolean, env: NodeJS.ProcessEnv): ChosenView {
  if (json) return { view: jsonView(standardStreams), screen: null, style: createStyle(false) };
  if (process.stdout.isTTY && env.TERM !== 'dumb') {
    const style = createStyle(wantsColour(process.stdout, env));
    const screen = new Screen(process.stdout, style);
    return { view: terminalView(screen, style), screen, style };
  }
  const style = createStyle(wantsColour(process.stderr, env));
  return { view: plainView(standardStreams, style), screen: null, style };
}
