/** Completions, run by their shells. A shell that is not installed is skipped. */
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SCOPES } from '@coxswain/gateway';
import { OnTimeout } from '@coxswain/protocol';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { COMMANDS } from '../src/line/mod.ts';
import { runCox } from './run-cox.ts';

const scriptOf = async (shell: string) => (await runCox(['completions', shell])).out;
const [bashScript, zshScript, fishScript] = [await scriptOf('bash'), await scriptOf('zsh'), await scriptOf('fish')];

let folder: string;
/** The home of a shell, where it may write files. */
let home: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'completions-'));
  home = mkdtempSync(join(tmpdir(), 'completions-home-'));
  mkdirSync(join(folder, 'sub'));
  writeFileSync(join(folder, 'persona.yaml'), '');
  writeFileSync(join(folder, 'two words.yaml'), '');
});
afterAll(() => {
  for (const one of [folder, home]) rmSync(one, { recursive: true });
});

const isThere = (shell: string) => spawnSync(shell, ['-c', 'exit 0']).status === 0;

/** The typed words; the last one is completed. */
type Line = readonly string[];

/** Every command, with the flags that are offered there. */
const PLACES: readonly (readonly [line: Line, flags: readonly string[]])[] = COMMANDS.map(({ name, flags }) => [
  [...name.split(' '), '--'],
  [...Object.keys(flags), 'help'].map((flag) => `--${flag}`),
]);
const FIRST_WORDS = COMMANDS.map(({ name }) => name.split(' ')[0] as string);
const TOPICS = new Set(COMMANDS.flatMap(({ name }) => (name.includes(' ') ? [name.split(' ')[0] as string] : [])));

/** Completed values of arguments and flags. */
const VALUES: readonly (readonly [line: Line, offered: readonly string[]])[] = [
  [['ru'], ['run']],
  [
    ['run', '--on-ask', ''],
    ['deny', 'wait'],
  ],
  [['approve', 'k3f9', '--remember', 's'], ['session']],
  [['serve', 'h'], ['hooks']],
  [
    ['steer', 'k3f9', '--mode', ''],
    ['finish_step', 'interrupt_immediate', 'audit_only'],
  ],
  [['message', 'remind', 'k3f9', 'text', '--role-hint', 'd'], ['developer']],
  [['session', 'suspend', 'k3f9', '--on-timeout', ''], OnTimeout.options],
  [
    ['admin', 'token', ''],
    ['add', 'list', 'remove'],
  ],
  [['admin', 'token', 'add', 'alice', '--scope', ''], SCOPES],
  [
    ['completions', ''],
    ['bash', 'zsh', 'fish'],
  ],
];

/** Completes all lines in one shell. @returns what it offers for each. */
type Complete = (lines: readonly Line[]) => readonly (readonly string[])[];

const quoted = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`;

const inBash: Complete = (lines) => {
  const asked = lines.map(
    (line) =>
      `COMP_WORDS=(cox ${line.map(quoted).join(' ')}); COMP_CWORD=${line.length}; _cox; printf '%s\\n' "\${COMPREPLY[@]}" ---`,
  );
  return run('bash', ['--norc', '--noprofile'], [bashScript, ...asked]);
};

// Outside of its line editor zsh has no completion functions: stubs print their arguments.
const inZsh: Complete = (lines) => {
  const stubs = [
    'compdef() { : }',
    // biome-ignore lint/suspicious/noTemplateCurlyInString: zsh's own
    "_describe() { local name=${@[-1]}; printf '%s\\n' ${${(P)name}%%:*} }",
    "compadd() { shift; printf '%s\\n' $@ }",
    '_files() { print -r -- files }',
  ];
  const asked = lines.map(
    (line) => `words=(cox ${line.map(quoted).join(' ')}); CURRENT=${line.length + 1}; _cox; print -- ---`,
  );
  return run('zsh', ['-f'], [...stubs, zshScript, ...asked]).map((offered, index) =>
    offered.filter((word) => word.startsWith(lines[index]?.at(-1) ?? '')),
  );
};

const inFish: Complete = (lines) => {
  const asked = lines.map(
    (line) =>
      `complete -C ${quoted(`cox ${line.join(' ')}`).replaceAll('\\', '\\\\')} | string split -f1 \\t; echo ---`,
  );
  return run('fish', ['--no-config'], [fishScript, ...asked]);
};

function run(shell: string, flags: readonly string[], script: readonly string[]): string[][] {
  // Not by standard input: some releases of fish take no socket for that, which is what Node gives.
  const file = join(home, `script.${shell}`);
  writeFileSync(file, script.join('\n'));
  const stdout = execFileSync(shell, [...flags, file], {
    cwd: folder,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { PATH: process.env.PATH, HOME: home },
  });
  return stdout
    .split('---\n')
    .slice(0, -1)
    .map((part) => part.split('\n').filter((word) => word !== ''));
}

const sorted = (words: readonly string[] | undefined) => [...new Set(words)].sort();

describe.each([
  ['bash', inBash],
  ['zsh', inZsh],
  ['fish', inFish],
] as const)('%s', (shell, complete) => {
  const here = isThere(shell);

  test.skipIf(!here)(`${shell} offers every command, and the commands of a topic`, () => {
    const [offered, ...ofTopics] = complete([[''], ...[...TOPICS].map((topic) => [topic, ''])]);
    expect(sorted(offered?.filter((word) => !word.startsWith('-')))).toEqual(sorted(FIRST_WORDS));
    for (const [index, topic] of [...TOPICS].entries())
      expect(sorted(ofTopics[index]), topic).toEqual(
        sorted(COMMANDS.flatMap(({ name }) => (name.startsWith(`${topic} `) ? [name.slice(topic.length + 1)] : []))),
      );
  });

  test.skipIf(!here)(`${shell} offers every flag of every command, and no other`, () => {
    const offered = complete(PLACES.map(([line]) => line));
    for (const [index, [line, flags]] of PLACES.entries())
      expect(sorted(offered[index]), line.join(' ')).toEqual(sorted(flags));
  });

  test.skipIf(!here)(`${shell} offers the values of arguments and flags`, () => {
    const offered = complete(VALUES.map(([line]) => line));
    for (const [index, [line, words]] of VALUES.entries())
      expect(sorted(offered[index]), line.join(' ')).toEqual(sorted(words));
  });
});

test.skipIf(!isThere('bash'))('bash offers files and folders for the flags that take them', () => {
  const [files, folders, session, spaced, escaped] = inBash([
    ['serve', 'hooks', '--nkey', 'per'],
    ['run', '--root', ''],
    ['attach', ''],
    ['run', '--persona', 'tw'],
    ['run', '--persona', 'two\\ w'],
  ]);
  expect(files).toEqual(['persona.yaml']);
  expect(spaced).toEqual(['two words.yaml']);
  expect(escaped).toEqual(['two words.yaml']);
  expect(folders).toEqual(['sub']);
  expect(session).toEqual([]);
});
