/** How a shell completes the values in the command table. */
import type { CommandSpec, FlagSpec, Section } from '../line/mod.ts';

/** Completed with file names, with folder names, with these words, or not at all. */
export type Completed = 'files' | 'folders' | 'nothing' | readonly string[];

/** How a shell completes the value of a flag, such as `DIR`, `FILE`, or the words `deny|wait`. */
export function flagValueOf({ value = '', words }: FlagSpec): Completed {
  if (words) return words;
  if (value === 'DIR') return 'folders';
  if (/\b(FILE|PATH)\b/.test(value)) return 'files';
  return wordsOf(value);
}

/** How a shell completes the first argument of a command. */
export function firstArgumentOf({ args }: CommandSpec): Completed {
  const inner = (args[0] ?? '').replace(/^[<[]|…?[>\]]$/g, '');
  if (/\b(file|path)\b/.test(inner)) return 'files';
  if (inner === 'folder') return 'folders';
  return wordsOf(inner);
}

/** The first words of all commands, with the help of the command or of its topic. */
export function firstWords(sections: readonly Section[]): readonly Pick<CommandSpec, 'name' | 'help'>[] {
  return sections.flatMap<Pick<CommandSpec, 'name' | 'help'>>((section) =>
    section.topic === undefined ? section.commands : [{ name: section.topic, help: section.help }],
  );
}

/** The topics with their commands. */
export function topicsOf(
  sections: readonly Section[],
): readonly { readonly topic: string; readonly commands: readonly CommandSpec[] }[] {
  return sections.filter((section) => section.topic !== undefined);
}

/** The last word in the name of a command. */
export function lastWordOf({ name }: CommandSpec): string {
  return name.split(' ').at(-1) as string;
}

function wordsOf(text: string): Exclude<Completed, 'files' | 'folders'> {
  return /^[a-z-]+(\|[a-z-]+)+$/.test(text) ? text.split('|') : 'nothing';
}

const HELP: FlagSpec = { short: 'h', help: 'Print the help' };

/** A flag with its spellings, such as `--model` and `-m`. */
export interface SpelledFlag extends FlagSpec {
  readonly long: string;
  /** The long spelling, then the short one if there is one. */
  readonly spellings: readonly string[];
}

/** The flags of a command, `--help` last. */
export function flagsOf({ flags }: Pick<CommandSpec, 'flags'>): readonly SpelledFlag[] {
  return Object.entries({ ...flags, help: HELP }).map(([name, flag]) => ({
    ...flag,
    long: name,
    spellings: [`--${name}`, ...(flag.short === undefined ? [] : [`-${flag.short}`])],
  }));
}
