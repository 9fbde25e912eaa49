/** Completions for zsh. */
import type { CommandSpec, HelpSpec } from '../line/command-spec.ts';
import { type Completed, firstArgumentOf, flagsOf, flagValueOf } from './completed-values.ts';

/** A script to be sourced after compinit, or to lie as `_cox` in a folder of fpath. */
export function zshScript(commands: readonly CommandSpec[]): string {
  return `#compdef cox
# Completions of cox for zsh: source <(cox completions zsh), after compinit
_cox() {
  local -a listed
  if (( CURRENT == 2 )); then
    listed=(${commands.map(({ name, help }) => described(name, help)).join(' ')})
    _describe -t commands 'command' listed
    return
  fi
  case "$words[2]:$words[CURRENT-1]" in
${commands.flatMap(valueCases).join('\n')}
  esac
  if [[ "$words[CURRENT]" != -* ]]; then
    case "$CURRENT:$words[2]" in
${commands.map((command) => `      (3:${command.name}) ${call(firstArgumentOf(command))} ;;`).join('\n')}
    esac
    case "$CURRENT:$words[2]:$words[3]" in
${commands.flatMap(partCases).join('\n')}
    esac
    return
  fi
  case "$words[2]:$words[3]" in
${commands.flatMap(flagCases).join('\n')}
  esac
  _describe -o 'flag' listed
}
if [ "$funcstack[1]" = "_cox" ]; then _cox "$@"; else compdef _cox cox; fi
`;
}

function valueCases({ name, flags }: CommandSpec): string[] {
  return Object.entries(flags)
    .filter(([, flag]) => flag.value !== undefined)
    .map(([flag, spec]) => `    (${name}:--${flag}) ${call(flagValueOf(spec))}; return ;;`);
}

/** What stands behind a part. */
function partCases({ name, parts = [] }: CommandSpec): string[] {
  return parts.map((part) => `      (4:${name}:${part.name}) ${call(firstArgumentOf(part))} ;;`);
}

function flagCases(command: CommandSpec): string[] {
  const line = (pattern: string, spec: HelpSpec) =>
    `    (${pattern}) listed=(${flagsOf(spec)
      .map(([name, { help }]) => described(`--${name}`, help))
      .join(' ')}) ;;`;
  return [
    ...(command.parts ?? []).map((part) => line(`${command.name}:${part.name}`, part)),
    line(`${command.name}:*`, command),
  ];
}

/** A word and what it means, in single quotes; a colon ends the word. */
function described(word: string, help: string): string {
  return `'${`${word}:${help}`.replaceAll("'", `'\\''`)}'`;
}

function call(completed: Completed): string {
  if (completed === 'files') return '_files';
  if (completed === 'folders') return '_files -/';
  return completed === 'nothing' ? ':' : `compadd -- ${completed.join(' ')}`;
}
