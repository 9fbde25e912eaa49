/** Sessions without a first prompt, and choices for a next run: what another `cox acp` finds of them. */
import { mkdtemp, readdir, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { EventOf } from '@coxswain/protocol';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { SessionSettings } from '../src/session-settings.ts';
import { type Unsent, UnsentSettings } from '../src/unsent-settings.ts';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'cox-acp-'));
});
afterEach(() => rm(folder, { recursive: true }));

const CREATED = { cwd: '/work', mcp_servers: { files: { command: 'server', args: [], env: { KEY: 'x' } } } };
const UNSENT: Unsent = { created: CREATED, chosen: { model: 'a/b', mode: 'kind' }, replaces: null };

test('what one connection saves, another reads; and nothing after it is removed', async () => {
  const inside = join(folder, 'state');
  const [one, other] = [new UnsentSettings(inside), new UnsentSettings(inside)];
  expect(await other.read('s1')).toBeNull();
  await one.save('s1', () => UNSENT);
  expect(await other.read('s1')).toEqual(UNSENT);
  expect((await stat(join(inside, 's1.json'))).mode & 0o777).toBe(0o600);
  await other.save('s1', () => null);
  expect(await one.read('s1')).toBeNull();
  expect(await readdir(inside)).toEqual([]);
});

test('a file that cannot be read counts as none, and an id cannot leave the folder', async () => {
  const unsent = new UnsentSettings(folder);
  await writeFile(join(folder, 's1.json'), '{"v":1,"created":');
  expect(await unsent.read('s1')).toBeNull();
  expect(await unsent.read('../s1')).toBeNull();
  await expect(unsent.save('../s1', () => UNSENT)).rejects.toThrow();
});

test('files of more than 30 days go with the first that is written', async () => {
  await new UnsentSettings(folder).save('old', () => UNSENT);
  const past = new Date(Date.now() - 31 * 24 * 3_600_000);
  await utimes(join(folder, 'old.json'), past, past);
  await new UnsentSettings(folder).save('recent', () => UNSENT);
  expect(await readdir(folder)).toEqual(['recent.json']);
});

test('a folder that cannot be written is an error that names it and the system’s code', async () => {
  await writeFile(join(folder, 'file'), '');
  const unsent = new UnsentSettings(join(folder, 'file'));
  await expect(unsent.save('s1', () => UNSENT)).rejects.toThrow(/cannot save the session in .*file: E/);
});

const offered = { models: ['a/b', 'c/d'], modes: {}, mode: undefined, baseUrl: undefined };
const started = (model: string): SessionSettings => {
  const settings = new SessionSettings(offered);
  const provision = { definition: { modes: { kind: { prompt: 'Be kind.' } } }, model: { name: model }, daemon: false };
  settings.learn({ type: 'persona_changed', provision } as unknown as EventOf<'persona_changed'>);
  return settings;
};

test('a choice that was not sent is made again, for a session without and with a journal', () => {
  const waiting = new SessionSettings({ ...offered, modes: { kind: { prompt: 'Be kind.' } } });
  waiting.restore({ chosen: { model: 'c/d', mode: 'kind' }, replaces: null });
  expect(waiting).toMatchObject({ model: 'c/d', mode: 'kind' });

  const before = started('a/b');
  before.chooseMode('kind');
  before.chooseOption('model', 'c/d');
  const after = started('a/b');
  after.restore(before.unsent);
  expect(after.changes).toEqual({ model: 'c/d', mode: 'kind' });
});

test('a choice gives way to a newer setting, and to a mode that the persona no longer has', () => {
  const before = started('a/b');
  before.chooseOption('model', 'c/d');
  const changed = started('e/f');
  changed.restore(before.unsent);
  expect(changed).toMatchObject({ model: 'e/f', hasChanges: false });
  const without = started('a/b');
  without.restore({ chosen: { model: 'a/b', mode: 'gruff' }, replaces: { model: 'a/b' } });
  expect(without.hasChanges).toBe(false);
});
