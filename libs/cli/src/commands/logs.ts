/** `cox logs`. */
import { join } from 'node:path';
import { stateDirOf } from '../folders/mod.ts';
import { CliError, type CommandRun, EXIT } from '../line/mod.ts';
import { LogReader, logLineText, stopSignal, UP_LOG } from '../service/mod.ts';
import { standardStreams } from '../terminal/mod.ts';

const LINES = 1_000;
const LINES_MAX = 1_000_000;

/**
 * Prints the last lines of the log of `cox up`. With `--follow`, also prints new lines until it is stopped. Exits 1 for
 * `not_running`.
 */
export const run: CommandRun = async ({ flags, env }) => {
  const stateDir = stateDirOf(flags, env);
  const limit = flags.whole('limit', { min: 0, max: LINES_MAX }) ?? LINES;
  const isJson = flags.on('json');
  const reader = new LogReader(join(stateDir, `${UP_LOG}.log`));
  const print = (lines: readonly string[]) => {
    for (const line of lines) standardStreams.out(isJson ? asJson(line) : `${logLineText(line)}\n`);
  };
  const last = await reader.last(limit);
  if (last === null && !flags.on('follow'))
    throw new CliError(EXIT.error, 'not_running', `not_running: ${stateDir} has no log; cox up writes it`);
  print(last ?? []);
  if (!flags.on('follow')) return EXIT.ok;
  const stop = stopSignal();
  const stopped = new AbortController();
  void stop.promise.then(() => stopped.abort());
  try {
    for await (const lines of reader.follow(stopped.signal)) print(lines);
  } finally {
    stop.release();
    await reader.close();
  }
  return EXIT.ok;
};

/** A line without valid JSON, such as one of a killed process, is printed as a message. */
function asJson(line: string): string {
  try {
    JSON.parse(line);
    return `${line}\n`;
  } catch {
    return `${JSON.stringify({ msg: line })}\n`;
  }
}
