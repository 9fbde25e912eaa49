/** What may stand where a shell completes: by how the command table calls it. */
import type { FlagSpec, HelpSpec } from '../line/command-spec.ts';

/** Completed by names of files, by those of folders, by these words, or by nothing that a shell knows. */
export type Completed = 'files' | 'folders' | 'nothing' | readonly string[];

/** What a value of a flag may be: `DIR`, `FILE`, or words such as `deny|wait`. */
export function flagValueOf({ value = '', words }: FlagSpec): Completed {
  if (words) return words;
  if (value === 'DIR') return 'folders';
  if (/\b(FILE|PATH)\b/.test(value)) return 'files';
  return wordsOf(value);
}

/** What the first argument of a command may be: a part of it, one of its words, or a file. */
export function firstArgumentOf({ args, parts = [] }: HelpSpec & { readonly parts?: readonly HelpSpec[] }): Completed {
  const inner = (args[0] ?? '').replace(/^[<[]|…?[>\]]$/g, '');
  if (inner === 'file' || inner === 'path') return 'files';
  if (inner === 'folder') return 'folders';
  const words = wordsOf(inner);
  const all = [...new Set([...parts.map(({ name }) => name), ...(words === 'nothing' ? [] : words)])];
  return all.length > 0 ? all : 'nothing';
}

function wordsOf(text: string): Exclude<Completed, 'files' | 'folders'> {
  return /^[a-z-]+(\|[a-z-]+)+$/.test(text) ? text.split('|') : 'nothing';
}

/** The flags that every command has. */
export const EVERYWHERE = { help: { help: 'What it takes, with examples' } } as const;

/** The flags of a command or part by their names, those that every command has last. */
export function flagsOf({ flags }: Pick<HelpSpec, 'flags'>): readonly (readonly [name: string, flag: FlagSpec])[] {
  return Object.entries({ ...flags, ...EVERYWHERE });
}
