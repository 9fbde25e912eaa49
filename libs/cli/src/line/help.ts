/** Writes the help: cac lays it out. */
import { cac } from 'cac';
import { type CommandSpec, type HelpSpec, worksWithoutPart } from './command-spec.ts';

/** What help is asked for: that of a part of a command, of a command, or of all. */
export interface AskedHelp {
  readonly command: CommandSpec | null;
  readonly part?: HelpSpec | undefined;
}

/** Prints the help that is asked for. Of a command that does nothing without one of its parts it is a list of them. */
export function printHelp(commands: readonly CommandSpec[], { command, part }: AskedHelp, version: string): void {
  const cli = cac('cox');
  const parts = command?.parts?.map((one) => ({ ...one, name: `${command.name} ${one.name}` })) ?? [];
  const own = command && worksWithoutPart(command) ? command : null;
  const one = part ? parts.find(({ name }) => name === `${command?.name} ${part.name}`) : own;
  const listed = one ? [one] : command === null ? commands : parts;
  cli.usage(command === null ? '<command> [options]' : `${command.name} ${command.args.join(' ')} [options]`);
  for (const spec of listed) {
    const entry = cli.command([spec.name, ...spec.args].join(' '), spec.help);
    for (const [name, flag] of Object.entries(spec.flags)) {
      entry.option(flag.value === undefined ? `--${name}` : `--${name} <${flag.value}>`, flag.help);
    }
    for (const example of spec.examples ?? []) entry.example(`  $ ${example}`);
  }
  // cac's own list of "run any command with --help" is longer than the help itself.
  cli.help((sections) =>
    sections
      .filter(({ title }) => !title?.startsWith('For more info'))
      // It takes `--no-…` for the other side of a flag that is on, and says so of what is off.
      .map(({ title, body }) => ({
        ...(title === undefined ? {} : { title }),
        body: body.replaceAll(' (default: true)', ''),
      })),
  );
  cli.version(version);
  cli.parse(['node', 'cox', ...(one ? [one.name] : []), '--help'], { run: false });
  if (command === null)
    console.info('\nSessions are named by id or by the beginning of one. More: cox <command> --help');
  else if (!part && parts.length > 0) {
    const more = `More: ${parts.map(({ name }) => `cox ${name} --help`).join(', ')}`;
    console.info(`\n${one ? '' : `${command.help}. `}${more}`);
  }
}
