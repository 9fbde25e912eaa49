/** What a command is called, takes and does. */
import type { ExitCode } from './cli-error.ts';
import type { Flags } from './flags.ts';

/** A flag of a command. A name has one meaning and one kind in all commands. */
export interface FlagSpec {
  /** With a value: how the value is called in the help, `DIR`. Without: the flag is on or off. */
  readonly value?: string;
  readonly help: string;
  /** What the value may be, where that is one of a few words: shells complete them. */
  readonly words?: readonly string[];
  /** May be given more than once. */
  readonly repeatable?: true;
}

/** What a command is handed. */
export interface Invocation {
  /** Its name. */
  readonly command: string;
  readonly flags: Flags;
  /** As many as the command declares, at most; where the last may be several, those too. */
  readonly args: readonly string[];
  readonly env: NodeJS.ProcessEnv;
}

/** A command's code. */
export type CommandRun = (invocation: Invocation) => Promise<ExitCode>;

/** What the help says of a command. */
export interface HelpSpec {
  readonly name: string;
  /** Positional arguments as the help shows them: `<session>` is needed, `[call]` is not; the last, `<session…>` or `[file…]`, may be several. */
  readonly args: readonly string[];
  readonly help: string;
  readonly flags: Readonly<Record<string, FlagSpec>>;
  readonly examples?: readonly string[];
}

/** One command. Its code is loaded only when it runs. */
export interface CommandSpec extends HelpSpec {
  /** What its first argument may be, where each is so different that it has a help of its own. Their flags are the command's, too. */
  readonly parts?: readonly HelpSpec[];
  readonly load: () => Promise<{ readonly run: CommandRun }>;
}

/** Whether a command does something without one of its parts: then its own flags are worth a help. */
export function worksWithoutPart({ args, parts = [] }: CommandSpec): boolean {
  return parts.length === 0 || !args[0]?.startsWith('<');
}
