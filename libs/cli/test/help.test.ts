/** The printed help. */
import { expect, test } from 'vitest';
import { COMMANDS, SECTIONS } from '../src/line/mod.ts';
import { runCox } from './run-cox.ts';

async function printed(...argv: string[]): Promise<string> {
  const { code, out } = await runCox(argv);
  expect(code).toBe(0);
  return out.trimEnd();
}

test('the overview names every command on one screen', async () => {
  const overview = await printed('--help');
  const lines = overview.split('\n');
  expect(lines.length).toBeLessThanOrEqual(40);
  for (const line of lines) expect(line.length, line).toBeLessThanOrEqual(80);
  const names = overview.split(/[\s:]+/);
  for (const { name } of COMMANDS) for (const word of name.split(' ')) expect(names, name).toContain(word);
  expect(await printed()).toBe(overview);
});

test('the help of a topic lists its commands, without a command, with --help and with cox help', async () => {
  for (const { topic, commands } of SECTIONS) {
    if (topic === undefined) continue;
    const listed = await printed(topic);
    for (const { name, help } of commands) {
      expect(listed).toContain(`  ${name.slice(topic.length + 1)} `);
      expect(listed).toContain(help);
    }
    expect(listed).not.toContain('attach');
    expect(await printed(topic, '--help')).toBe(listed);
  }
  expect(await printed('serve', 'dinner', '--help')).toBe(await printed('serve'));
});

test('the help of a command has its flags with their short forms, and no others', async () => {
  const hooks = await printed('serve', 'hooks', '--help');
  expect(hooks).toContain('$ cox serve hooks <file>');
  expect(hooks).toContain('--name <NAME>');
  expect(hooks).not.toContain('--manifest');
  expect(await printed('serve', 'hook', '--help')).toBe(hooks);
  expect(await printed('run', '--help')).toContain('-m, --model <PROVIDER/NAME>');
  expect(await printed('session', 'watch', 'k3f9', '--help')).toContain('-f, --follow');
});

test('the help of every command fits in 80 columns', async () => {
  for (const { name } of COMMANDS) {
    const help = await printed(...name.split(' '), '--help');
    for (const line of help.split('\n')) expect(line.length, `${name}: ${line}`).toBeLessThanOrEqual(80);
  }
});

test('the help of a command is one short sentence', () => {
  for (const { name, help } of COMMANDS) {
    expect(help.length, name).toBeLessThanOrEqual(60);
    expect(help, name).not.toMatch(/[.;]$|;/);
  }
});

test('values of flags are spelled as in the API, and a short flag has one meaning', () => {
  const meanings = new Map<string, Set<string>>();
  for (const { name, flags } of COMMANDS)
    for (const [flag, { words = [], short }] of Object.entries(flags)) {
      for (const word of words) expect(word, `${name} --${flag}`).toMatch(/^[a-z]+(_[a-z]+)*$/);
      if (short !== undefined) meanings.set(short, (meanings.get(short) ?? new Set()).add(flag));
    }
  for (const [short, of] of meanings) expect([...of], short).toHaveLength(1);
});
