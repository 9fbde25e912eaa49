/** Text of files and of the bus in lists: no character of it controls the terminal. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ListedPersona } from '@coxswain/adapter-nats';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { servedPersonaText } from '../src/run/mod.ts';
import { runCox } from './run-cox.ts';

const HOSTILE = 'a\u001b]0;pwn\u0007\u009b2J\u202eb';
const HARMLESS = 'a]0;pwn2Jb';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'coxswain-foreign-'));
});
afterEach(async () => {
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

test('a served persona: its version, and the reason of its pause in one line', () => {
  const since = '2026-01-01T00:00:00.000Z';
  const pause = { since, reason: `${HOSTILE}\nforged` };
  const persona = { name: 'x', announcement: { version: HOSTILE }, pause, instances: [] } as unknown as ListedPersona;
  expect(servedPersonaText(persona)).toBe(
    `x  ${HARMLESS}  no instances  paused since ${since}: ${HARMLESS} ⏎ forged\n`,
  );
});

test('the names of arguments in two journals that differ', async () => {
  const journal = await readFile(join(import.meta.dirname, '../../../tests/traces/approval-edited.jsonl'), 'utf8');
  const [one, other] = [join(folder, 'one'), join(folder, 'other')];
  await writeFile(one, journal);
  await writeFile(other, journal.replaceAll('"ms":', `${JSON.stringify(HOSTILE)}:1,"ms":`));
  const { code, out } = await runCox(['session', 'diff', one, other]);
  expect(code).toBe(1);
  expect(out).toContain(HARMLESS);
  for (const control of ['\u001b', '\u009b', '\u202e']) expect(out).not.toContain(control);
});
