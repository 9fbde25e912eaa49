/**
 * Reads a command line against the command table. Node's own parser is used for the values, because cac's reads "007"
 * and "1e3" as numbers, also in prompts and ids; cac writes the help.
 */
import { parseArgs } from 'node:util';
import { nearestWord } from '@coxswain/protocol/nearest-word';
import { cutGraphemes } from '@coxswain/protocol/unicode-text';
import { usageError } from './cli-error.ts';
import type { CommandSpec, FlagSpec, HelpSpec } from './command-spec.ts';
import { Flags, type GivenFlag } from './flags.ts';

/** A command line that fits its command; or a request for help or the version. */
export type ParsedLine =
  | { readonly kind: 'command'; readonly command: CommandSpec; readonly flags: Flags; readonly args: readonly string[] }
  | { readonly kind: 'help'; readonly command: CommandSpec | null; readonly part?: HelpSpec | undefined }
  | { readonly kind: 'version' };

/**
 * Reads a command line.
 * @throws CliError with exit code 2, naming what is wrong and the nearest that is right.
 */
export function parseLine(argv: readonly string[], commands: readonly CommandSpec[]): ParsedLine {
  const known = allFlags(commands);
  const { tokens } = parseArgs({
    args: [...argv],
    options: Object.fromEntries(
      [...known].map(([name, spec]) => [name, { type: spec.value === undefined ? 'boolean' : 'string' } as const]),
    ),
    strict: false,
    allowPositionals: true,
    tokens: true,
  });
  const given: (GivenFlag & { raw: string; inline: boolean })[] = [];
  const positionals: string[] = [];
  for (const token of tokens) {
    if (token.kind === 'positional') positionals.push(token.value);
    if (token.kind !== 'option') continue;
    const name = (Object.hasOwn(SHORT, token.name) ? SHORT[token.name] : undefined) ?? token.name;
    given.push({ name, value: token.value ?? true, raw: token.rawName, inline: token.inlineValue === true });
  }

  const [word, ...args] = positionals;
  if (word === undefined) {
    if (given.some(({ name }) => name === 'version')) return { kind: 'version' };
    const stray = given.find(({ name }) => name !== 'help');
    if (stray && !known.has(stray.name)) throw unknownFlag(stray.raw, null, known.keys());
    return { kind: 'help', command: null };
  }
  const command = commands.find(({ name }) => name === word);
  if (!command) {
    // What follows a flag that no command has may have been meant as its value.
    const stray = given.find(({ name }) => name !== 'help' && name !== 'version' && !known.has(name));
    throw stray && argv.indexOf(stray.raw) === 0
      ? unknownFlag(stray.raw, null, known.keys())
      : unknownCommand(word, commands);
  }
  if (given.some(({ name }) => name === 'help'))
    return { kind: 'help', command, part: command.parts?.find(({ name }) => name === args[0]) };

  for (const flag of given) checkFlag(flag, command, given);
  const needed = command.args.filter((arg) => arg.startsWith('<'));
  if (args.length < needed.length) {
    throw usageError(
      `cox ${command.name} needs ${needed.slice(args.length).join(' ')}; see cox ${command.name} --help`,
    );
  }
  if (args.length > command.args.length && !/…[>\]]$/.test(command.args.at(-1) ?? '')) {
    const extra = args[command.args.length] as string;
    throw usageError(
      `cox ${command.name} does not know what to do with "${extra}"; put quotes around text with spaces`,
    );
  }
  return { kind: 'command', command, flags: new Flags(given), args };
}

const SHORT: Readonly<Record<string, string>> = { h: 'help', v: 'version' };

function checkFlag(
  flag: GivenFlag & { raw: string; inline: boolean },
  command: CommandSpec,
  given: readonly GivenFlag[],
): void {
  const spec = Object.hasOwn(command.flags, flag.name) ? command.flags[flag.name] : undefined;
  if (!spec) throw unknownFlag(flag.raw, command, Object.keys(command.flags));
  if (spec.value === undefined && flag.value !== true) throw usageError(`--${flag.name} takes no value`);
  if (spec.value !== undefined && flag.value === true) throw usageError(`--${flag.name} needs a value: ${spec.value}`);
  if (!flag.inline && typeof flag.value === 'string' && flag.value.length > 1 && flag.value.startsWith('-')) {
    throw usageError(
      `--${flag.name} needs a value: ${spec.value}; one that begins with - is written --${flag.name}=${flag.value}`,
    );
  }
  if (!spec.repeatable && given.filter(({ name }) => name === flag.name).length > 1) {
    throw usageError(`--${flag.name} is given twice`);
  }
}

function allFlags(commands: readonly CommandSpec[]): Map<string, FlagSpec> {
  return new Map(commands.flatMap((command) => Object.entries(command.flags)));
}

function unknownFlag(raw: string, command: CommandSpec | null, candidates: Iterable<string>): Error {
  const near = nearestWord(raw.replace(/^-+/, ''), candidates);
  const meant = near === null ? '' : `; did you mean --${near}?`;
  return usageError(`cox ${command ? `${command.name} ` : ''}has no flag ${raw}${meant}`);
}

function unknownCommand(word: string, commands: readonly CommandSpec[]): Error {
  const near = nearestWord(
    word,
    commands.map(({ name }) => name),
  );
  return usageError(
    `there is no command "${cutGraphemes(word, 64)}"${near === null ? '; see cox --help' : `; did you mean cox ${near}?`}`,
  );
}
