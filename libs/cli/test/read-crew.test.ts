/** The personas that are sent with a start. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { choosePersona, FolderTrust, readCrew } from '../src/folders/mod.ts';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'cox-crew-'));
  await mkdir(join(folder, 'personas'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const trust = () => new FolderTrust(folder, { XDG_STATE_HOME: join(folder, 'state') }, false);
const write = (name: string, text: string) => writeFile(join(folder, name), text);
const names = async (persona: string, ...named: string[]) =>
  (await readCrew(await choosePersona(persona, folder, null), named, folder, trust())).map((one) => one.persona.name);

test('the targets of hand-offs are included, also indirect ones, each once, without the persona itself', async () => {
  await write('personas/desk.yaml', 'name: desk\nhandoffs: [clerk, elsewhere]');
  await write('personas/clerk.yaml', 'name: clerk\nhandoffs: [desk, boss]');
  await write('personas/boss.yaml', 'name: boss\nhandoffs: [clerk]');
  await write('personas/other.yaml', 'name: other');
  expect(await names('desk')).toEqual(['clerk', 'boss']);
});

test('a persona of --crew takes precedence over the folder; a file that contains another name is not used', async () => {
  await write('personas/desk.yaml', 'name: desk\nhandoffs: [clerk, boss]');
  await write('personas/clerk.yaml', 'name: clerk\nprompt: from the folder');
  await write('personas/boss.yaml', 'name: chief');
  await write('clerk.yaml', 'name: clerk\nprompt: from the line');
  const crew = await readCrew(await choosePersona('desk', folder, null), ['clerk.yaml'], folder, trust());
  expect(crew.map(({ persona }) => persona.prompt)).toEqual(['from the line']);
});

test('a persona that only the host knows has no crew here', async () => {
  expect(await readCrew('other', [], folder, trust())).toEqual([]);
});

test('an invalid persona of the crew is reported before the start', async () => {
  await write('personas/desk.yaml', 'name: desk\nhandoffs: [clerk]');
  await write('personas/clerk.yaml', 'name: clerk\npromt: x');
  await expect(names('desk')).rejects.toThrow(/clerk\.yaml:2:1: unknown key "promt"/);
});
