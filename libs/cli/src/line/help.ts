/** Writes the help: cac lays it out. */
import { cac } from 'cac';
import type { CommandSpec } from './command-spec.ts';

/** Prints the help of one command, or of all. */
export function printHelp(commands: readonly CommandSpec[], command: CommandSpec | null, version: string): void {
  const cli = cac('cox');
  cli.usage('<command> [options]');
  for (const spec of command === null ? commands : [command]) {
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
  cli.parse(['node', 'cox', ...(command === null ? [] : [command.name]), '--help'], { run: false });
  if (command === null)
    console.info('\nSessions are named by id or by the beginning of one. More: cox <command> --help');
}
