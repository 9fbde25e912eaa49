/**
 * Parses a command line with the command table. Node's own parser keeps values as typed: "007" and "1e3" in prompts and
 * ids stay texts.
 */
import { parseArgs } from 'node:util';
import { nearestWord } from '@coxswain/protocol/nearest-word';
import { cutGraphemes } from '@coxswain/protocol/unicode-text';
import { usageError } from './cli-error.ts';
import type { CommandSpec, FlagSpec } from './command-spec.ts';
import { Flags, type GivenFlag } from './flags.ts';
import { unknownCommand } from './unknown-command.ts';

/** A valid command line, or a request for help or the version. */
export type ParsedLine =
  | { readonly kind: 'command'; readonly command: CommandSpec; readonly flags: Flags; readonly args: readonly string[] }
  /** The help of a command, of a topic such as `session`, or of all commands. */
  | { readonly kind: 'help'; readonly command: CommandSpec | null; readonly topic?: string | undefined }
  | { readonly kind: 'version'; readonly json: boolean };

/**
 * Parses a command line.
 * @throws CliError with exit code 2, naming the problem and, if there is one, a similar valid name.
 */
export function parseLine(argv: readonly string[], commands: readonly CommandSpec[]): ParsedLine {
  const known = allFlags(commands);
  const { tokens } = parseArgs({
    args: [...argv],
    options: Object.fromEntries([...known, ...EVERYWHERE].map(([name, spec]) => [name, optionOf(spec)])),
    strict: false,
    allowPositionals: true,
    tokens: true,
  });
  const given: (GivenFlag & { raw: string; inline: boolean })[] = [];
  const positionals: string[] = [];
  for (const token of tokens) {
    if (token.kind === 'positional') positionals.push(token.value);
    if (token.kind !== 'option') continue;
    given.push({
      name: token.name,
      value: token.value ?? true,
      raw: token.rawName,
      inline: token.inlineValue === true,
    });
  }

  const [word, second] = positionals;
  const wantsHelp = given.some(({ name }) => name === 'help');
  if (word === undefined) {
    if (given.some(({ name }) => name === 'version'))
      return { kind: 'version', json: given.some(({ name }) => name === 'json') };
    const stray = given.find(({ name }) => name !== 'help');
    if (stray && !known.has(stray.name)) throw unknownFlag(stray.raw, null, known.keys());
    return { kind: 'help', command: null };
  }
  const command = namedCommand(positionals, commands);
  if (!command) {
    // The word after an unknown flag may be its value.
    const stray = given.find(({ name }) => !EVERYWHERE.has(name) && !known.has(name));
    if (stray && argv.indexOf(stray.raw) === 0) throw unknownFlag(stray.raw, null, known.keys());
    const isTopic = commands.some(({ name }) => name.startsWith(`${word} `));
    if (isTopic && (second === undefined || wantsHelp)) return { kind: 'help', command: null, topic: word };
    throw unknownCommand(positionals, commands);
  }
  if (wantsHelp) return { kind: 'help', command };

  const args = positionals.slice(command.name.split(' ').length);
  for (const flag of given) checkFlag(flag, command, given);
  const needed = command.args.filter((arg) => arg.startsWith('<'));
  if (args.length < needed.length) {
    throw usageError(
      `cox ${command.name} needs ${needed.slice(args.length).join(' ')}; see cox ${command.name} --help`,
    );
  }
  if (args.length > command.args.length && !/…[>\]]$/.test(command.args.at(-1) ?? '')) {
    const extra = args[command.args.length] as string;
    // A text with spaces was quoted already.
    const isReason = /\s/.test(extra) && Object.hasOwn(command.flags, 'reason');
    const hint = isReason ? '--reason gives a reason' : 'put quotes around text with spaces';
    throw usageError(`cox ${command.name} has an unexpected argument "${extra}"; ${hint}`);
  }
  return { kind: 'command', command, flags: new Flags(withFormat(given)), args };
}

/** Flags outside of the command table. `--help` is valid on every line, `--version` on a line without a command. */
const EVERYWHERE: ReadonlyMap<string, FlagSpec> = new Map([
  ['help', { short: 'h', help: 'Print the help' }],
  ['version', { short: 'v', help: 'Print the version' }],
]);

function optionOf({ value, short }: FlagSpec) {
  return {
    type: value === undefined ? ('boolean' as const) : ('string' as const),
    ...(short === undefined ? {} : { short }),
  };
}

/**
 * Finds the command that a line names: `run` by its first word, `session list` by its first two.
 * @returns undefined if no command has that name.
 */
export function namedCommand(words: readonly string[], commands: readonly CommandSpec[]): CommandSpec | undefined {
  const isNamed = (name: string) => name.split(' ').every((part, at) => part === words[at]);
  return commands.find(({ name, aliases = [] }) => isNamed(name) || aliases.some(isNamed));
}

/**
 * `--output json` and `--output yaml` imply `--json`: the command prints JSON lines, and `output.ts` converts them to
 * YAML.
 */
function withFormat(given: readonly GivenFlag[]): readonly GivenFlag[] {
  const format = given.find(({ name }) => name === 'output')?.value;
  const isJson = given.some(({ name }) => name === 'json');
  if (format === undefined || format === 'json') return format && !isJson ? [...given, JSON_FLAG] : given;
  if (isJson) throw usageError(`--json and --output ${format} exclude each other`);
  return format === 'yaml' ? [...given, JSON_FLAG] : given;
}

const JSON_FLAG: GivenFlag = { name: 'json', value: true };

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
  const { words } = spec;
  if (words && typeof flag.value === 'string') {
    const wrong = wordsOf(flag.value, spec).find((one) => !words.includes(one));
    if (wrong !== undefined)
      throw usageError(`--${flag.name} takes ${words.join(', ')}, not "${cutGraphemes(wrong, 64)}"`);
  }
  if (!spec.repeatable && given.filter(({ name }) => name === flag.name).length > 1) {
    throw usageError(`--${flag.name} is given twice`);
  }
}

/** The words of a value. A repeatable flag also takes several words, separated by commas. */
function wordsOf(value: string, { repeatable }: FlagSpec): readonly string[] {
  return repeatable ? value.split(',') : [value];
}

function allFlags(commands: readonly CommandSpec[]): Map<string, FlagSpec> {
  return new Map(commands.flatMap((command) => Object.entries(command.flags)));
}

function unknownFlag(raw: string, command: CommandSpec | null, candidates: Iterable<string>): Error {
  const near = nearestWord(raw.replace(/^-+/, ''), candidates);
  const meant = near === null ? '' : `; did you mean --${near}?`;
  return usageError(`cox ${command ? `${command.name} ` : ''}has no flag ${raw}${meant}`);
}
