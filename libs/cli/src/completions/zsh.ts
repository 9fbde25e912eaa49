/** Completions for zsh. */
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

/** The completion script for zsh, to be sourced after compinit, or stored as `_cox` in a folder of fpath. */
export function zshScript(sections: readonly Section[]): string {
  const commands = sections.flatMap((section) => section.commands);
  return `#compdef cox
# Completions of cox for zsh: source <(cox completions zsh), after compinit
_cox() {
  local -a listed
  local place="$words[2]:$words[3]"
  if (( CURRENT == 2 )); then
    listed=(${firstWords(sections)
      .map(({ name, help }) => described(name, help))
      .join(' ')})
    _describe -t commands 'command' listed
    return
  fi
  case "$place:$words[CURRENT-1]" in
${commands.flatMap(valueCases).join('\n')}
  esac
  if [[ "$words[CURRENT]" != -* ]]; then
    case "$CURRENT:$place" in
${[...topicsOf(sections).map(secondWords), ...commands.map(argumentCase)].join('\n')}
    esac
    return
  fi
  case "$place" in
${commands.map(flagCase).join('\n')}
  esac
  _describe -o 'flag' listed
}
if [ "$funcstack[1]" = "_cox" ]; then _cox "$@"; else compdef _cox cox; fi
`;
}

/** The pattern for `place` after a command was typed. */
function placeOf({ name }: CommandSpec): string {
  return name.includes(' ') ? name.replace(' ', ':') : `${name}:*`;
}

function secondWords({
  topic,
  commands,
}: {
  readonly topic: string;
  readonly commands: readonly CommandSpec[];
}): string {
  const words = commands.map((command) => described(lastWordOf(command), command.help));
  return `      (3:${topic}:*) listed=(${words.join(' ')}); _describe -t commands 'command' listed ;;`;
}

function argumentCase(command: CommandSpec): string {
  const at = command.name.includes(' ') ? 4 : 3;
  return `      (${at}:${placeOf(command)}) ${call(firstArgumentOf(command))} ;;`;
}

function valueCases(command: CommandSpec): string[] {
  return flagsOf(command)
    .filter(({ value }) => value !== undefined)
    .map((flag) => {
      const patterns = flag.spellings.map((spelling) => `${placeOf(command)}:${spelling}`);
      return `    (${patterns.join('|')}) ${call(flagValueOf(flag))}; return ;;`;
    });
}

function flagCase(command: CommandSpec): string {
  const flags = flagsOf(command).map(({ long, help }) => described(`--${long}`, help));
  return `    (${placeOf(command)}) listed=(${flags.join(' ')}) ;;`;
}

/** A word and its description in single quotes, separated by a colon. */
function described(word: string, help: string): string {
  return `'${`${word}:${help}`.replaceAll("'", `'\\''`)}'`;
}

function call(completed: Completed): string {
  if (completed === 'files') return '_files';
  if (completed === 'folders') return '_files -/';
  return completed === 'nothing' ? ':' : `compadd -- ${completed.join(' ')}`;
}
