/** Pages for `man`, made from the command table: roff with the `man` macros, which groff and mandoc both read. */
import type { CommandSpec, Section } from './command-spec.ts';

/** The page of all commands: `cox.1`. */
export function manualOf(sections: readonly Section[], version: string): string {
  const commands = sections.flatMap((section) => section.commands);
  return page('cox', version, [
    section('NAME', [plain('cox - run and steer durable agent sessions')]),
    section('SYNOPSIS', [`.B cox`, `.I command`, plain('[options]')]),
    section('DESCRIPTION', [
      plain('Starts, steers, follows and replays durable agent sessions on NATS.'),
      '.PP',
      plain('Name a session by its id or its first characters.'),
    ]),
    section(
      'COMMANDS',
      commands.flatMap(({ name, args, help }) => ['.TP', bold(`cox ${[name, ...args].join(' ')}`), plain(help)]),
    ),
    section(
      'EXIT STATUS',
      EXIT_CODES.flatMap(([code, means]) => ['.TP', bold(code), plain(means)]),
    ),
    section(
      'ENVIRONMENT',
      ENVIRONMENT.flatMap(([name, means]) => ['.TP', bold(name), plain(means)]),
    ),
    section('SEE ALSO', [plain([...new Set(commands.map(({ name }) => `cox-${name.split(' ')[0]}(1)`))].join(', '))]),
  ]);
}

/** The other pages, keyed by name: `cox-run` for a command, `cox-session` for all commands of a topic. */
export function manualPages(sections: readonly Section[], version: string): ReadonlyMap<string, string> {
  return new Map(
    sections.flatMap((one) =>
      one.topic === undefined
        ? one.commands.map((command) => [`cox-${command.name}`, manualOfCommand(command, version)] as const)
        : [[`cox-${one.topic}`, manualOfTopic(one, version)] as const],
    ),
  );
}

function manualOfCommand(command: CommandSpec, version: string): string {
  return page(`cox-${command.name}`, version, [
    section('NAME', [plain(`cox-${command.name} - ${lowered(command.help)}`)]),
    section('SYNOPSIS', synopsis(command)),
    section('DESCRIPTION', [plain(`${command.help}.`)]),
    section('OPTIONS', options(command)),
    ...examples([command]),
    section('SEE ALSO', [plain('cox(1)')]),
  ]);
}

function manualOfTopic({ topic, help, commands }: Extract<Section, { topic: string }>, version: string): string {
  return page(`cox-${topic}`, version, [
    section('NAME', [plain(`cox-${topic} - ${lowered(help)}`)]),
    section('SYNOPSIS', commands.flatMap(synopsis)),
    section('DESCRIPTION', [plain(`${help}.`)]),
    ...commands.map((command) =>
      section(`COX ${command.name}`.toUpperCase(), [plain(`${command.help}.`), ...options(command)]),
    ),
    ...examples(commands),
    section('SEE ALSO', [plain('cox(1)')]),
  ]);
}

/** The exit codes of `cox` commands, which docs/guides/cli.md explains. */
export const EXIT_CODES = [
  ['0', 'Success: the run ended normally, or the command is done.'],
  ['1', 'An error.'],
  ['2', 'The command line is invalid.'],
  ['3', 'Cancelled.'],
  ['4', 'A limit or a budget ended the run.'],
  ['5', 'A hook blocked the prompt.'],
  ['6', 'An approval is needed, and no terminal can give it.'],
  ['129', 'The terminal has closed.'],
  ['130', 'Detached: the session continues.'],
  ['141', 'The reader of the output has closed the pipe.'],
] as const;

/** The environment variables on the man page. */
export const ENVIRONMENT = [
  ['NATS_URL', 'Address of the bus (NATS).'],
  ['NATS_NKEY', 'Key file that authenticates the user.'],
  ['COX_STATE_DIR', 'State directory of the embedded server.'],
  ['COX_MODEL', 'Model, if neither a flag nor a persona names one.'],
  ['COX_MANIFEST', 'Manifest that declares hooks and tools.'],
  ['COX_ACTOR', 'Name of the sender in commands.'],
] as const;

function page(name: string, version: string, sections: readonly string[]): string {
  return [
    `.\\" Generated from libs/cli/src/line/command-table.ts by npm run docs. Do not edit.`,
    `.TH ${quoted(name.toUpperCase())} 1 "" ${quoted(`Coxswain ${version}`)} "Coxswain"`,
    // People paste commands, so no word may be hyphenated or spaced out.
    '.nh',
    '.ad l',
    ...sections,
    '',
  ].join('\n');
}

function section(title: string, lines: readonly string[]): string {
  return [`.SH ${quoted(title)}`, ...lines].join('\n');
}

function synopsis({ name, args }: CommandSpec): string[] {
  return [bold(`cox ${name}`), plain([...args, '[options]'].join(' ')), '.br'];
}

function options({ flags }: CommandSpec): string[] {
  return Object.entries(flags).flatMap(([name, { value, short, help, repeatable }]) => {
    const names = `${short === undefined ? '' : `-${short}, `}--${name}`;
    return [
      '.TP',
      value === undefined ? bold(names) : `.BI ${quoted(`${names} `)} ${quoted(value)}`,
      plain(`${help}${repeatable ? '. May be given several times' : ''}.`),
    ];
  });
}

function examples(specs: readonly CommandSpec[]): string[] {
  const all = [...new Set(specs.flatMap(({ examples: of = [] }) => of))];
  return all.length === 0 ? [] : [section('EXAMPLES', ['.nf', ...all.map(plain), '.fi'])];
}

function bold(text: string): string {
  return `.B ${quoted(text)}`;
}

/** Escapes a line of text, so that it contains no roff escape or request. */
function plain(text: string): string {
  const line = escaped(text);
  return /^[.']/.test(line) ? `\\&${line}` : line;
}

/** Quotes an argument of a macro. */
function quoted(text: string): string {
  return `"${escaped(text).replaceAll('"', '\\(dq')}"`;
}

// roff may print a bare hyphen as a typographic one, which shells do not accept. Other letters are written as numbers.
function escaped(text: string): string {
  return (
    text
      .replaceAll('\\', '\\e')
      // Devices for ASCII have no glyph for it.
      .replaceAll('…', '...')
      .replaceAll('-', '\\-')
      .replaceAll('`', '\\(ga')
      .replaceAll("'", '\\(aq')
      .replaceAll('^', '\\(ha')
      .replaceAll('~', '\\(ti')
      .replaceAll(/[^\x20-\x7e]/gu, (letter) => {
        const number = (letter.codePointAt(0) as number).toString(16).toUpperCase().padStart(4, '0');
        return `\\[u${number}]`;
      })
  );
}

function lowered(help: string): string {
  return help.charAt(0).toLowerCase() + help.slice(1);
}
