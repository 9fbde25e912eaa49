/** The declaration of a command: its name, arguments, flags and code. */
import type { ExitCode } from './cli-error.ts';
import type { Flags } from './flags.ts';

/** A flag of a command. A name has one meaning and one kind in all commands. */
export interface FlagSpec {
  /** The name of the value in the help, such as `DIR`. A flag without it is on or off. */
  readonly value?: string;
  readonly help: string;
  /** One letter: `-m` for `--model`. It has the same meaning in all commands. */
  readonly short?: string;
  /** The valid values, if they are a few words. Shells complete them. */
  readonly words?: readonly string[];
  /** May be given more than once. */
  readonly repeatable?: true;
}

/** The input of a command. */
export interface Invocation {
  /** The name of the command: `run`, `session list`. */
  readonly command: string;
  readonly flags: Flags;
  /** The positional arguments: at most as many as the command declares, more if the last one may repeat. */
  readonly args: readonly string[];
  readonly env: NodeJS.ProcessEnv;
}

/** A command's code. */
export type CommandRun = (invocation: Invocation) => Promise<ExitCode>;

/** One command. Its code is imported only when it runs. */
export interface CommandSpec {
  /** One word, or a topic and a word: `run`, `session list`. */
  readonly name: string;
  /** Other spellings of the name, accepted and not listed: `serve hook` for `serve hooks`. */
  readonly aliases?: readonly string[];
  /**
   * Positional arguments as shown in the help: `<session>` is required, `[call]` is optional. The last one may repeat:
   * `<session…>`.
   */
  readonly args: readonly string[];
  /** An imperative sentence of at most 60 characters. */
  readonly help: string;
  readonly flags: Readonly<Record<string, FlagSpec>>;
  readonly examples?: readonly string[];
  readonly load: () => Promise<{ readonly run: CommandRun }>;
}

/** Commands that are listed together in the help. */
export type Section = CommandSection | TopicSection;

/** Commands of one word. */
export interface CommandSection {
  readonly topic?: undefined;
  readonly title: string;
  readonly commands: readonly CommandSpec[];
}

/** Commands whose names start with the same word. */
export interface TopicSection {
  readonly topic: string;
  readonly title?: undefined;
  readonly help: string;
  readonly commands: readonly CommandSpec[];
}
