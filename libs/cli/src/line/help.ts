/** Writes the help: cac lays out that of one command. */
import { cac } from 'cac';
import type { CommandSection, CommandSpec, Section, TopicSection } from './command-spec.ts';

/** Which help is wanted: of a command, of a topic such as `session`, or of all. */
export interface WantedHelp {
  readonly command: CommandSpec | null;
  readonly topic?: string | undefined;
}

/** Prints the help. */
export function printHelp(sections: readonly Section[], { command, topic }: WantedHelp): void {
  const section = topicSections(sections).find((one) => one.topic === topic);
  if (command !== null) printCommand(command);
  else console.info(section ? topicHelp(section) : overview(sections));
}

/** Columns of a terminal that is not wide. */
const COLUMNS = 80;

/** All commands on one screen: those of one word with their sentence, the others by name after their topic. */
export function overview(sections: readonly Section[]): string {
  const lines = ['cox: run and steer durable agent sessions on NATS', '', 'Usage: cox <command> [options]'];
  const titled = sections.filter((section): section is CommandSection => section.topic === undefined);
  const topics = topicSections(sections);
  for (const { title, commands } of titled.slice(0, -1)) lines.push('', title, ...rows(commands));
  lines.push('', 'Manage');
  for (const { topic, commands } of topics) lines.push(...namesBehind(`  ${topic.padEnd(WIDTH)} `, commands));
  for (const { title, commands } of titled.slice(-1)) lines.push('', title, ...namesBehind(' ', commands));
  lines.push('', 'Name a session by its id or by the beginning of it. More: cox <command> --help');
  return lines.join('\n');
}

function topicHelp({ topic, help, commands }: TopicSection): string {
  return [
    help,
    '',
    `Usage: cox ${topic} <command> [options]`,
    '',
    ...rows(commands.map((one) => ({ ...one, name: one.name.slice(topic.length + 1) }))),
    '',
    `More: cox ${topic} <command> --help`,
  ].join('\n');
}

function topicSections(sections: readonly Section[]): readonly TopicSection[] {
  return sections.filter((section) => section.topic !== undefined);
}

/** Columns of names. */
const WIDTH = 11;

function rows(commands: readonly Pick<CommandSpec, 'name' | 'help'>[]): string[] {
  return commands.map(({ name, help }) => `  ${name.padEnd(WIDTH)}  ${help}`);
}

/** The last words of commands, wrapped behind what begins the line. */
function namesBehind(lead: string, commands: readonly CommandSpec[]): string[] {
  const lines: string[] = [];
  let line = lead;
  for (const { name } of commands) {
    const word = name.split(' ').at(-1) as string;
    if (line.length + 1 + word.length > COLUMNS) {
      lines.push(line);
      line = ' '.repeat(lead.length);
    }
    line += ` ${word}`;
  }
  return [...lines, line];
}

function printCommand(spec: CommandSpec): void {
  const cli = cac('cox');
  const entry = cli.command([spec.name, ...spec.args].join(' '), spec.help);
  for (const [name, flag] of Object.entries(spec.flags)) {
    const short = flag.short === undefined ? '' : `-${flag.short}, `;
    entry.option(`${short}--${name}${flag.value === undefined ? '' : ` <${flag.value}>`}`, flag.help);
  }
  for (const example of spec.examples ?? []) entry.example(`  $ ${example}`);
  cli.help((sections) => [
    { body: spec.help },
    ...sections
      .filter(({ title }) => !title?.startsWith('For more info') && title !== undefined)
      // It takes `--no-…` for the other side of a flag that is on, and says so of what is off.
      .map(({ title, body }) => ({ title: title as string, body: body.replaceAll(' (default: true)', '') })),
  ]);
  cli.parse(['node', 'cox', spec.name, '--help'], { run: false });
}
