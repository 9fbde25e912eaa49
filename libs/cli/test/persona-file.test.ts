import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { choosePersona, readPersona } from '../src/run/persona-file.ts';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'cox-persona-'));
});
afterAll(() => rm(folder, { recursive: true }));

async function persona(text: string, name = 'p.yaml'): Promise<string> {
  const path = join(folder, name);
  await writeFile(path, text);
  return path;
}

test('a persona is read from YAML, whole', async () => {
  const path = await persona(`
name: reviewer
model: scripted/x.yaml
prompt: |
  You review.
tools: [read_*]
permissions: {rules: [{tool: "run_*", when: 'command =~ "^npm"', action: allow}], default: deny}
limits: {max_turns: 3, parallel_calls: 2}
steering: {steering: one_at_a_time}
modes: {strict: {prompt: Be strict.}}
daemon: {}
`);
  expect((await readPersona(path)).persona).toMatchObject({
    name: 'reviewer',
    model: { name: 'scripted/x.yaml' },
    tools: { allow: ['read_*'], deny: [] },
    permissions: { default: 'deny' },
    limits: { max_turns: 3, parallel_calls: 2 },
    steering: { steering: 'one_at_a_time', followups: 'one_at_a_time' },
  });
});

test('and from JSON', async () => {
  expect((await readPersona(await persona('{"name": "j", "prompt": "x"}', 'p.json'))).persona.name).toBe('j');
});

describe('is refused by path and with the nearest key:', () => {
  test.each([
    ['name: a\npromt: x', 'unknown key "promt"; did you mean "prompt"?'],
    ['name: a\nlimits: {max_turn: 3}', 'unknown key "limits.max_turn"; did you mean "max_turns"?'],
    ['name: a\npermissions: {rules: [{tool: x, action: allow}, {tol: x, action: ask}]}', 'permissions.rules[1].tool'],
    ['name: a\npermissions: {rules: [{tool: x, action: alow}]}', 'permissions.rules[0].action'],
    ['name: a\nmcp_servers: {s: {comand: x}}', 'mcp_servers.s'],
    ['name: a b', 'name: a persona name must be'],
    ['prompt: x', 'name:'],
    ['name: a\nmodel: gpt', 'model: a model is written provider/name'],
    ['- a', 'must be an object with name, version'],
    ['name: a\nstop_when: [{txt: a}]', 'unknown key "stop_when[0].txt"; did you mean "text"?'],
    [
      'name: a\nmcp_servers: {s: {command: x, url: "http://x"}}',
      'mcp_servers.s: these keys do not go together: command, url',
    ],
    ['name: [', 'persona'],
  ])('%j', async (text, message) => {
    await expect(readPersona(await persona(text))).rejects.toMatchObject({ exitCode: 2 });
    await expect(readPersona(await persona(text))).rejects.toThrow(message);
  });
});

test.each([
  ['skills: [a]', 'skills'],
  ['hooks: [{}]', 'hooks'],
  ['handoffs: [b]', 'handoffs'],
])('what a later release brings is refused by name: %s', async (text, name) => {
  await expect(readPersona(await persona(`name: a\n${text}`))).rejects.toThrow(
    `${name} is not there yet in this release`,
  );
});

test('a folder is a persona.yaml with its prompt.md', async () => {
  const path = join(folder, 'clerk');
  await mkdir(path);
  await writeFile(join(path, 'persona.yaml'), 'name: clerk\n');
  await writeFile(join(path, 'prompt.md'), 'You keep papers.');
  expect((await readPersona(path)).persona.prompt).toBe('You keep papers.');
});

test('a name is looked for in personas/ and else left to the host', async () => {
  await mkdir(join(folder, 'personas'), { recursive: true });
  await writeFile(join(folder, 'personas/local.yaml'), 'name: local\n');
  expect(await choosePersona('local', folder)).toMatchObject({ persona: { name: 'local' } });
  expect(await choosePersona('elsewhere', folder)).toBe('elsewhere');
  await expect(choosePersona('./none.yaml', folder)).rejects.toThrow('cannot be read');
});

test('what is neither a name nor a path is said to be neither', async () => {
  await expect(choosePersona('a b', folder)).rejects.toMatchObject({
    exitCode: 2,
    message: expect.stringContaining('a file has a dot or a slash'),
  });
});
