/** Completions for fish. */
import type { CommandSpec, Section } from '../line/mod.ts';
import {
  type Completed,
  firstArgumentOf,
  firstWords,
  flagsOf,
  flagValueOf,
  lastWordOf,
  topicsOf,
} from './completed-values.ts';

/** The completion script for fish 3 or newer, to be sourced, or stored as `cox.fish` in the folder of completions. */
export function fishScript(sections: readonly Section[]): string {
  return [
    '# Completions of cox for fish: cox completions fish | source',
    // Commands can share a word: `cox tool list` is not `cox session list`.
    'function __cox_at',
    '  set -l words (commandline -opc)',
    '  test "$words[2]" = "$argv[1]"; or return 1',
    '  set -q argv[2]; or return 0',
    '  test "$words[3]" = "$argv[2]"',
    'end',
    // Only the topic has been typed so far.
    'function __cox_in',
    '  __cox_at $argv[1]; and test (count (commandline -opc)) -eq 2',
    'end',
    'complete -c cox -f',
    ...firstWords(sections).map(
      ({ name, help }) => `complete -c cox -n __fish_use_subcommand -a ${name} -d ${quoted(help)}`,
    ),
    `complete -c cox -n __fish_use_subcommand -l help -d ${quoted('Print the help')}`,
    `complete -c cox -n __fish_use_subcommand -l version -d ${quoted('Print the version')}`,
    ...topicsOf(sections).flatMap(({ topic, commands }) =>
      commands.map(
        (command) =>
          `complete -c cox -n ${quoted(`__cox_in ${topic}`)} -a ${lastWordOf(command)} -d ${quoted(command.help)}`,
      ),
    ),
    ...sections.flatMap(({ commands }) => commands).flatMap(linesOf),
    '',
  ].join('\n');
}

function linesOf(command: CommandSpec): string[] {
  const condition = `__cox_at ${command.name}`;
  return [...argument(condition, firstArgumentOf(command)), ...flagLines(condition, command)];
}

function flagLines(condition: string, spec: CommandSpec): string[] {
  return flagsOf(spec).map((flag) => {
    const short = flag.short === undefined ? '' : ` -s ${flag.short}`;
    const value = flag.value === undefined ? '' : ` -x${values(flagValueOf(flag))}`;
    return `complete -c cox -n ${quoted(condition)}${short} -l ${flag.long}${value} -d ${quoted(flag.help)}`;
  });
}

function argument(condition: string, completed: Completed): string[] {
  return completed === 'nothing' ? [] : [`complete -c cox -n ${quoted(condition)}${values(completed)}`];
}

function values(completed: Completed): string {
  if (completed === 'files') return ` -a '(__fish_complete_path)'`;
  if (completed === 'folders') return ` -a '(__fish_complete_directories)'`;
  return completed === 'nothing' ? '' : ` -a ${quoted(completed.join(' '))}`;
}

/** Quotes a text for fish. In single quotes, fish treats only backslashes and single quotes as special. */
function quoted(text: string): string {
  return `'${text.replaceAll(/[\\']/g, (one) => `\\${one}`)}'`;
}
