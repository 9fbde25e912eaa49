/** What may stand where a shell completes: by how the command table calls it. */
import type { CommandSpec, FlagSpec, Section } from '../line/command-spec.ts';

/** Completed by names of files, by those of folders, by these words, or by nothing that a shell knows. */
export type Completed = 'files' | 'folders' | 'nothing' | readonly string[];

/** What a value of a flag may be: `DIR`, `FILE`, or words such as `deny|wait`. */
export function flagValueOf({ value = '', words }: FlagSpec): Completed {
  if (words) return words;
  if (value === 'DIR') return 'folders';
  if (/\b(FILE|PATH)\b/.test(value)) return 'files';
  return wordsOf(value);
}

/** What the first argument of a command may be: one of its words, or a file. */
export function firstArgumentOf({ args }: CommandSpec): Completed {
  const inner = (args[0] ?? '').replace(/^[<[]|…?[>\]]$/g, '');
  if (/\b(file|path)\b/.test(inner)) return 'files';
  if (inner === 'folder') return 'folders';
  return wordsOf(inner);
}

/** The first words of all commands, each once, with the help of the command or of the topic. */
export function firstWords(sections: readonly Section[]): readonly Pick<CommandSpec, 'name' | 'help'>[] {
  return sections.flatMap<Pick<CommandSpec, 'name' | 'help'>>((section) =>
    section.topic === undefined ? section.commands : [{ name: section.topic, help: section.help }],
  );
}

/** Topics with the second words of their commands. */
export function topicsOf(
  sections: readonly Section[],
): readonly { readonly topic: string; readonly commands: readonly CommandSpec[] }[] {
  return sections.filter((section) => section.topic !== undefined);
}

/** The second word of a command of a topic; the name of any other. */
export function lastWordOf({ name }: CommandSpec): string {
  return name.split(' ').at(-1) as string;
}

function wordsOf(text: string): Exclude<Completed, 'files' | 'folders'> {
  return /^[a-z-]+(\|[a-z-]+)+$/.test(text) ? text.split('|') : 'nothing';
}

const HELP: FlagSpec = { short: 'h', help: 'Print the help' };

/** A flag as it is typed: `--model`, `-m`. */
export interface SpelledFlag extends FlagSpec {
  readonly long: string;
  /** The spellings, the long one first. */
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
