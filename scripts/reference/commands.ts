/** The reference of `cox` commands, from the command table. */
import type { CommandSpec, FlagSpec } from '../../libs/cli/src/line/command-spec.ts';
import { SECTIONS } from '../../libs/cli/src/line/command-table.ts';
import { ENVIRONMENT, EXIT_CODES } from '../../libs/cli/src/line/man-page.ts';
import { code, generatedFrom, table } from './markdown.ts';

/** Flags that most commands take. The page lists them once. */
const COMMON = ['nats', 'nkey', 'context', 'state-dir', 'json', 'output', 'quiet'];

/** The text of docs/reference/commands.md. */
export function commandReference(): string {
  return [
    generatedFrom('libs/cli/src/line/command-table.ts'),
    '# Commands\n',
    'Every command of `cox` with its flags. `cox <command> --help` prints the same, and `man cox-run` shows a man page after a global installation.',
    'The [command line guide](../guides/cli.md) explains the commands by task.\n',
    '## Common flags\n',
    'A command that takes these flags gives them this meaning, unless its own table says otherwise.\n',
    flagTable(commonFlags()),
    '',
    '## Exit codes\n',
    table(['Code', 'Meaning'], EXIT_CODES),
    '',
    '## Environment variables\n',
    table(
      ['Variable', 'Meaning'],
      ENVIRONMENT.map(([name, means]) => [code(name), means]),
    ),
    '',
    ...SECTIONS.flatMap(({ title, topic, commands }) => [
      `## ${title ?? `cox ${topic}`}\n`,
      ...commands.flatMap(chapter),
    ]),
  ].join('\n');
}

function chapter({ name, args, help, flags, examples = [] }: CommandSpec): string[] {
  const own = Object.entries(flags).filter(([flag, spec]) => !COMMON.includes(flag) || isOther(flag, spec));
  return [
    `### cox ${name}\n`,
    `${code(['cox', name, ...args].join(' '))}: ${help}.\n`,
    ...(own.length > 0 ? [flagTable(own), ''] : []),
    ...(examples.length > 0 ? ['```sh', ...examples, '```', ''] : []),
  ];
}

/** The common flags, with the help text of the first command that has each flag. */
function commonFlags(): [string, FlagSpec][] {
  return COMMON.map((flag) => [flag, commonSpec(flag)]);
}

function commonSpec(flag: string): FlagSpec {
  const spec = SECTIONS.flatMap(({ commands }) => commands).find(({ flags }) => flag in flags)?.flags[flag];
  if (!spec) throw new Error(`no command takes --${flag}`);
  return spec;
}

function isOther(flag: string, { help }: FlagSpec): boolean {
  return help !== commonSpec(flag).help;
}

function flagTable(flags: readonly (readonly [string, FlagSpec])[]): string {
  return table(
    ['Flag', 'Meaning'],
    flags.map(([name, { value, short, help, repeatable }]) => [
      code(`${short === undefined ? '' : `-${short}, `}--${name}${value === undefined ? '' : ` ${value}`}`),
      `${help}${repeatable ? '; repeatable' : ''}`,
    ]),
  );
}
