/** Completions for bash. */
import type { CommandSpec, HelpSpec } from '../line/command-spec.ts';
import { type Completed, firstArgumentOf, flagsOf, flagValueOf } from './completed-values.ts';

/** A script to be sourced by bash 3.2 or newer. */
export function bashScript(commands: readonly CommandSpec[]): string {
  return `# Completions of cox for bash: source <(cox completions bash)
_cox() {
  local cur=\${COMP_WORDS[COMP_CWORD]} prev=\${COMP_WORDS[COMP_CWORD-1]} flags= first= second=
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    _cox_words '${[...commands.map(({ name }) => name), '--help', '--version'].join(' ')}'
    return
  fi
  case "\${COMP_WORDS[1]}:$prev" in
${commands.flatMap(valueCases).join('\n')}
  esac
  case "\${COMP_WORDS[1]}:\${COMP_WORDS[2]}" in
${commands.flatMap(flagCases).join('\n')}
  esac
  case "$cur" in
    -*) _cox_words "$flags" ;;
    *)
      case "$COMP_CWORD" in
        2) eval "$first" ;;
        3) eval "$second" ;;
      esac ;;
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

function valueCases({ name, flags }: CommandSpec): string[] {
  return Object.entries(flags)
    .filter(([, flag]) => flag.value !== undefined)
    .map(([flag, spec]) => `    ${name}:--${flag}) ${call(flagValueOf(spec))}; return ;;`);
}

function flagCases(command: CommandSpec): string[] {
  const first = call(firstArgumentOf(command));
  const line = (pattern: string, spec: HelpSpec, second: Completed) =>
    `    ${pattern}) flags='${flagsOf(spec)
      .map(([name]) => `--${name}`)
      .join(' ')}' first=${JSON.stringify(first)} second=${JSON.stringify(call(second))} ;;`;
  const parts = command.parts ?? [];
  return [
    ...parts.map((part) => line(`${command.name}:${part.name}`, part, firstArgumentOf(part))),
    line(`${command.name}:*`, command, 'nothing'),
  ];
}

function call(completed: Completed): string {
  if (completed === 'files') return '_cox_files';
  if (completed === 'folders') return '_cox_folders';
  return completed === 'nothing' ? ':' : `_cox_words '${completed.join(' ')}'`;
}
