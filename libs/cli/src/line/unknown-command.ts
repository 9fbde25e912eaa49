/** The error for a command that does not exist. It suggests the command that was probably meant. */
import { nearestWord } from '@coxswain/protocol/nearest-word';
import { cutGraphemes } from '@coxswain/protocol/unicode-text';
import { type CliError, usageError } from './cli-error.ts';
import type { CommandSpec } from './command-spec.ts';

/** Former names of commands, with their current names. */
const RENAMED: Readonly<Record<string, string>> = {
  approvals: 'approval list',
  auth: 'admin auth',
  delete: 'session delete',
  diff: 'session diff',
  export: 'session export',
  followup: 'message followup',
  fork: 'session fork',
  hooks: 'hook list',
  import: 'session import',
  inspect: 'session inspect',
  pending: 'message list',
  permissions: 'approval rules',
  personas: 'persona list',
  remind: 'message remind',
  replace: 'message edit',
  replay: 'session replay',
  resume: 'session resume',
  revoke: 'message withdraw',
  sessions: 'session list',
  show: 'session show',
  signal: 'session signal',
  streams: 'admin streams',
  suspend: 'session suspend',
  sweep: 'admin retention',
  tools: 'tool list',
  trace: 'session trace',
  tree: 'session tree',
  usage: 'session usage',
  watch: 'session watch',
};

/** Builds the error, with exit code 2, for a line whose first words name no command. */
export function unknownCommand(words: readonly string[], commands: readonly CommandSpec[]): CliError {
  const [word = '', second] = words;
  const inTopic = commands.filter(({ name }) => name.startsWith(`${word} `));
  if (inTopic.length > 0) {
    const named = inTopic.map(({ name }) => name.slice(word.length + 1));
    const near = nearestWord(second ?? '', named);
    const hint = near === null ? `; there are ${named.join(', ')}` : `; did you mean cox ${word} ${near}?`;
    return usageError(`there is no command "${cutGraphemes(`${word} ${second}`, 64)}"${hint}`);
  }
  const shown = `there is no command "${cutGraphemes(word, 64)}"`;
  const now = Object.hasOwn(RENAMED, word) ? RENAMED[word] : undefined;
  if (now !== undefined) return usageError(`${shown}; it is now: cox ${now}`);
  const sameWord = commands.filter(({ name }) => name.endsWith(` ${word}`)).map(({ name }) => `cox ${name}`);
  if (sameWord.length > 0) return usageError(`${shown}; did you mean ${sameWord.join(' or ')}?`);
  const near = nearestWord(word, [...new Set(commands.map(({ name }) => name.split(' ')[0] as string))]);
  return usageError(`${shown}${near === null ? '; see cox --help' : `; did you mean cox ${near}?`}`);
}
