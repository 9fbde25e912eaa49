/** Completions for fish. */
import type { CommandSpec, HelpSpec } from '../line/command-spec.ts';
import { type Completed, firstArgumentOf, flagsOf, flagValueOf } from './completed-values.ts';

/** A script to be sourced by fish 3 or newer, or to lie as `cox.fish` among its completions. */
export function fishScript(commands: readonly CommandSpec[]): string {
  return [
    '# Completions of cox for fish: cox completions fish | source',
    // A word of another command may be one of its own: `cox serve persona` is not `cox persona`.
    'function __cox_at',
    '  set -l words (commandline -opc)',
    '  test "$words[2]" = "$argv[1]"; or return 1',
    '  set -q argv[2]; or return 0',
    '  contains -- "$words[3]" $argv[2..-1]',
    'end',
    'complete -c cox -f',
    ...commands.map(({ name, help }) => `complete -c cox -n __fish_use_subcommand -a ${name} -d ${quoted(help)}`),
    `complete -c cox -n __fish_use_subcommand -l help -d ${quoted('What there is')}`,
    `complete -c cox -n __fish_use_subcommand -l version -d ${quoted('Which release this is')}`,
    ...commands.flatMap(linesOf),
    '',
  ].join('\n');
}

function linesOf(command: CommandSpec): string[] {
  const seen = `__cox_at ${command.name}`;
  const parts = command.parts ?? [];
  const names = parts.map(({ name }) => name).join(' ');
  const rest = parts.length === 0 ? seen : `${seen}; and not ${seen} ${names}`;
  return [
    ...argument(rest, firstArgumentOf(command)),
    ...flagLines(rest, command),
    ...parts.flatMap((part) => {
      const behind = `${seen} ${part.name}`;
      return [...argument(behind, firstArgumentOf(part)), ...flagLines(behind, part)];
    }),
  ];
}

function flagLines(condition: string, spec: HelpSpec): string[] {
  return flagsOf(spec).map(([name, flag]) => {
    const value = flag.value === undefined ? '' : ` -x${values(flagValueOf(flag))}`;
    return `complete -c cox -n ${quoted(condition)} -l ${name}${value} -d ${quoted(flag.help)}`;
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

/** In fish single quotes a backslash and a quote are escaped, and nothing else. */
function quoted(text: string): string {
  return `'${text.replaceAll(/[\\']/g, (one) => `\\${one}`)}'`;
}
