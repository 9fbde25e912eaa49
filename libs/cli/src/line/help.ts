/** Prints the help. */
import type { CommandSection, CommandSpec, FlagSpec, Section, TopicSection } from './command-spec.ts';

/** The requested help: of a command, of a topic such as `session`, or of all commands. */
export interface WantedHelp {
  readonly command: CommandSpec | null;
  readonly topic?: string | undefined;
}

/** Prints the help. */
export function printHelp(sections: readonly Section[], { command, topic }: WantedHelp): void {
  const section = topicSections(sections).find((one) => one.topic === topic);
  if (command !== null) console.info(commandHelp(command));
  else console.info(section ? topicHelp(section) : overview(sections));
}

/** The width of the help, in columns. */
const COLUMNS = 80;

/**
 * All commands on one screen. Commands without a topic have their sentence; the others, and the last section, are
 * listed by name.
 */
export function overview(sections: readonly Section[]): string {
  const lines = ['cox: run and steer durable agent sessions on NATS', '', 'Usage: cox <command> [options]'];
  const titled = sections.filter((section): section is CommandSection => section.topic === undefined);
  const topics = topicSections(sections);
  for (const { title, commands } of titled.slice(0, -1)) lines.push('', title, ...rows(commands));
  lines.push('', 'Manage');
  for (const { topic, commands } of topics) lines.push(...namesBehind(`  ${topic.padEnd(WIDTH)} `, commands));
  for (const { title, commands } of titled.slice(-1)) lines.push('', title, ...namesBehind(' ', commands));
  lines.push('', 'Name a session by its id or its first characters. More: cox <command> --help');
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

/** The width of the names, in columns. */
const WIDTH = 11;

function rows(commands: readonly Pick<CommandSpec, 'name' | 'help'>[]): string[] {
  return commands.map(({ name, help }) => `  ${name.padEnd(WIDTH)}  ${help}`);
}

/** The last words of commands, wrapped after the lead of the line. */
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

/** The help of one command: usage, flags with their help next to them, and examples. */
function commandHelp({ name, args, help, flags, examples = [] }: CommandSpec): string {
  const usage = ['cox', name, ...args, ...(Object.keys(flags).length > 0 ? ['[options]'] : [])].join(' ');
  const options = Object.entries({ ...flags, help: HELP }).map(
    ([flag, { short, value, help: text }]) =>
      [
        `${short === undefined ? '' : `-${short}, `}--${flag}${value === undefined ? '' : ` <${value}>`}`,
        text,
      ] as const,
  );
  const width = Math.min(OPTION_WIDTH, Math.max(...options.map(([spelled]) => spelled.length)));
  return [
    help,
    '',
    'Usage:',
    `  $ ${usage}`,
    '',
    'Options:',
    ...options.flatMap(([spelled, text]) => optionLines(spelled, text, width)),
    ...(examples.length > 0 ? ['', 'Examples:', ...examples.map((one) => `  $ ${one}`)] : []),
  ].join('\n');
}

const HELP: FlagSpec = { short: 'h', help: 'Print this help' };
/** The width of the flags, in columns. The help of a longer flag starts on the next line. */
const OPTION_WIDTH = 26;

function optionLines(spelled: string, help: string, width: number): string[] {
  const indent = ' '.repeat(width + 4);
  const lines = [spelled.length > width ? `  ${spelled}` : ''];
  let line = spelled.length > width ? indent : `  ${spelled.padEnd(width)}  `;
  for (const word of help.split(' ')) {
    if (line.length + word.length > COLUMNS && line.trim() !== spelled) {
      lines.push(line.trimEnd());
      line = indent;
    }
    line += `${word} `;
  }
  return [...lines, line.trimEnd()].filter((one) => one !== '');
}
