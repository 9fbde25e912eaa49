/** The help, as it is printed. */
import { afterEach, expect, test, vi } from 'vitest';
import { COMMANDS } from '../src/line/command-table.ts';
import { dispatch } from '../src/line/dispatch.ts';

afterEach(() => vi.restoreAllMocks());

async function help(...argv: string[]): Promise<string> {
  const said: string[] = [];
  for (const method of ['info', 'log'] as const)
    vi.spyOn(console, method).mockImplementation((text) => void said.push(String(text)));
  expect(await dispatch([...argv, '--help'], {})).toBe(0);
  return said.join('\n');
}

test('each service has a help of its own, with the flags that it takes', async () => {
  const hooks = await help('serve', 'hooks');
  expect(hooks).toContain('$ cox serve hooks <file>');
  expect(hooks).toContain('--name <NAME>');
  expect(hooks).not.toContain('--manifest');
  const tool = await help('serve', 'tool', './my-tool.ts');
  expect(tool).toContain('$ cox serve tool <file>');
  expect(tool).not.toMatch(/--name|--manifest|policy\.ts/);
  const sessions = await help('serve', 'sessions');
  expect(sessions).toContain('--manifest <FILE>');
  expect(sessions).not.toContain('--tenant');
});

test.each([[['serve']], [['serve', 'dinner']]])('%j lists the services, and where their helps are', async (argv) => {
  const overview = await help(...argv);
  for (const { name } of COMMANDS.find((one) => one.name === 'serve')?.parts ?? [])
    expect(overview).toContain(`cox serve ${name} --help`);
  expect(overview).not.toContain('attach');
});

test('the flags of a command are those of its parts', () => {
  for (const { name, flags, parts } of COMMANDS)
    for (const part of parts ?? []) expect(flags, `${name} ${part.name}`).toMatchObject(part.flags);
});

test('a command without parts has one help, and all commands have a list', async () => {
  expect(await help('sessions')).toContain('--limit <N>');
  const all = await help();
  for (const { name } of COMMANDS) expect(all).toContain(`  ${name}`);
});

test.each([[['auth', 'token', 'add']], [['auth', 'token']], [['auth']]])(
  'cox %j --help lists the flags of tokens',
  async (argv) => {
    const said = await help(...argv);
    for (const flag of ['--tokens <FILE>', '--scope <SCOPE>', '--expires <TIME>', '--tenant <NAME>'])
      expect(said).toContain(flag);
  },
);

test('a command that works without its parts has its own flags in its help, and names theirs', async () => {
  const said = await help('auth');
  expect(said).toContain('--out <DIR>');
  expect(said).toContain('More: cox auth token --help');
  expect(await help('auth', 'token')).not.toContain('--out');
});
