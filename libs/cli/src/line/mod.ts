/** Command lines: the table of commands, parsing, help, errors and output. */
export { chooseWaiting, readReplacement } from './choose-waiting.ts';
export { CliError, EXIT, type ExitCode, usageError } from './cli-error.ts';
export type { CommandRun, CommandSpec, FlagSpec, Invocation, Section } from './command-spec.ts';
export { COMMANDS, SECTIONS } from './command-table.ts';
export { dispatch } from './dispatch.ts';
export { Flags } from './flags.ts';
export { printHelp } from './help.ts';
export { manualOf, manualPages } from './man-page.ts';
export { withOutput, writeNotice, writeOut } from './output.ts';
export { namedCommand, parseLine } from './parse-line.ts';
export { recordNotThere } from './record-not-there.ts';
export { shellQuoted } from './shell-quoted.ts';
export { readDuration, readRetention } from './typed-duration.ts';
export { unknownCommand } from './unknown-command.ts';
