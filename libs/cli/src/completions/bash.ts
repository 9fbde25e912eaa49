/** Completions for bash. */
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

/** The completion script for bash 3.2 or newer, to be sourced. */
export function bashScript(sections: readonly Section[]): string {
  const commands = sections.flatMap((section) => section.commands);
  return `# Completions of cox for bash: source <(cox completions bash)
_cox() {
  local cur=\${COMP_WORDS[COMP_CWORD]} prev=\${COMP_WORDS[COMP_CWORD-1]} flags= words= first=: at=2
  local place="\${COMP_WORDS[1]}:\${COMP_WORDS[2]}"
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    _cox_words '${[...firstWords(sections).map(({ name }) => name), '--help', '--version'].join(' ')}'
    return
  fi
  case "\${COMP_WORDS[1]}" in
${topicsOf(sections)
  .map(({ topic, commands: of }) => `    ${topic}) words='${of.map(lastWordOf).join(' ')}' at=3 ;;`)
  .join('\n')}
  esac
  case "$place:$prev" in
${commands.flatMap(valueCases).join('\n')}
  esac
  case "$place" in
${commands.map(flagCase).join('\n')}
  esac
  case "$cur" in
    -*) _cox_words "$flags" ;;
    *)
      if [ "$COMP_CWORD" -eq "$at" ]; then eval "$first"
      elif [ "$COMP_CWORD" -eq 2 ]; then _cox_words "$words"
      fi ;;
  esac
}
_cox_words() { COMPREPLY=( $(compgen -W "$1" -- "$cur") ); }
_cox_paths() {
  local path
  # Line by line, as names may have spaces; what is typed of one may have them behind a backslash.
  while IFS= read -r path; do COMPREPLY+=( "$path" ); done < <(compgen "$1" -- "\${cur//\\\\/}")
}
_cox_files() { _cox_paths -f; }
_cox_folders() { _cox_paths -d; }
complete -o filenames -F _cox cox
`;
}

/** The pattern for `place` after a command was typed. */
function placeOf({ name }: CommandSpec): string {
  return name.includes(' ') ? name.replace(' ', ':') : `${name}:*`;
}

function valueCases(command: CommandSpec): string[] {
  return flagsOf(command)
    .filter(({ value }) => value !== undefined)
    .map((flag) => {
      const patterns = flag.spellings.map((spelling) => `${placeOf(command)}:${spelling}`);
      return `    ${patterns.join('|')}) ${call(flagValueOf(flag))}; return ;;`;
    });
}

function flagCase(command: CommandSpec): string {
  const flags = flagsOf(command).map(({ long }) => `--${long}`);
  return `    ${placeOf(command)}) flags='${flags.join(' ')}' first=${JSON.stringify(call(firstArgumentOf(command)))} ;;`;
}

function call(completed: Completed): string {
  if (completed === 'files') return '_cox_files';
  if (completed === 'folders') return '_cox_folders';
  return completed === 'nothing' ? ':' : `_cox_words '${completed.join(' ')}'`;
}
