/** Text of files and of the bus in lists: no character of it controls the terminal. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { listServed, listServedPersonas } from '@coxswain/adapter-nats';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { COMMANDS } from '../src/line/mod.ts';
import { showServedPersonas } from '../src/run/mod.ts';
import { runCox } from './run-cox.ts';

vi.mock('@coxswain/adapter-nats', async (original) => ({
  ...(await original<object>()),
  listServed: vi.fn(),
  listServedPersonas: vi.fn(),
}));
// Without a bus, the command is the function that prints its answer.
vi.mock('../src/instance/mod.ts', async (original) => ({
  ...(await original<object>()),
  listCommand: (print: unknown) => print,
}));

const HOSTILE = 'a\u001b]0;pwn\u0007\u009b2J\u202eb';
const HARMLESS = 'a]0;pwn2Jb';

let folder: string;
let printed = '';
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'coxswain-foreign-'));
  printed = '';
  vi.spyOn(process.stdout, 'write').mockImplementation((text) => {
    printed += String(text);
    return true;
  });
});
afterEach(async () => {
  vi.restoreAllMocks();
  await rm(folder, { recursive: true });
});

async function fileWith(name: string, definition: object): Promise<string> {
  const path = join(folder, name);
  await writeFile(path, JSON.stringify(definition));
  return path;
}

test('the prompt of a persona', async () => {
  const path = await fileWith('x.json', { name: 'x', prompt: `one ${HOSTILE}\ntwo` });
  expect((await runCox(['persona', 'show', path])).out).toContain(`\none ${HARMLESS}\ntwo\n`);
});

test('the path and the problem of a persona that is checked', async () => {
  const valid = await fileWith('v\u009b2J.json', { name: 'x' });
  const invalid = await fileWith('i\u009b2J.json', { name: 'x', [HOSTILE]: 1 });
  const { out } = await runCox(['persona', 'check', valid, invalid]);
  expect(out).toMatch(/v2J\.json: x \S+ is valid\n/);
  expect(out).toContain('i2J.json');
  for (const control of ['\u001b', '\u009b', '\u202e']) expect(out).not.toContain(control);
});

test('a served persona: its version, and the reason of its pause in one line', async () => {
  const since = '2026-01-01T00:00:00.000Z';
  vi.mocked(listServedPersonas).mockResolvedValue([
    { name: 'x', announcement: { version: HOSTILE }, pause: { since, reason: `${HOSTILE}\nforged` }, instances: [] },
  ] as never);
  await showServedPersonas({} as never, 'default' as never, false);
  expect(printed).toBe(`x  ${HARMLESS}  no instances  paused since ${since}: ${HARMLESS} ⏎ forged\n`);
});

test('the pattern of a hook', async () => {
  const registration = {
    id: 'h',
    point: 'pre_tool_use',
    pattern: HOSTILE,
    priority: 0,
    timeout_ms: 1,
    on_error: 'deny',
  };
  vi.mocked(listServed).mockResolvedValue([
    { announcement: { service: 's', since: '2026', registrations: [registration] }, instances: [] },
  ] as never);
  const command = COMMANDS.find(({ name }) => name === 'hook list');
  if (!command) throw new Error('there is no command hook list');
  const { run } = await command.load();
  await (run as unknown as (nc: object, tenant: string, json: boolean) => Promise<unknown>)({}, 'default', false);
  expect(printed).toContain(`  ${HARMLESS}  priority 0`);
});
