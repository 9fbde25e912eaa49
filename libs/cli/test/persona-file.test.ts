/** Persona files: YAML and JSON, folders, skills, and the positions of problems. */
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { chooseCrew, choosePersona, FolderTrust, readPersona } from '../src/folders/mod.ts';

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

test('a persona is read from YAML', async () => {
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

test('a persona is read from JSON', async () => {
  expect((await readPersona(await persona('{"name": "j", "prompt": "x"}', 'p.json'))).persona.name).toBe('j');
});

test('a folder is a persona.yaml with its prompt.md', async () => {
  const path = join(folder, 'clerk');
  await mkdir(path);
  await writeFile(join(path, 'persona.yaml'), 'name: clerk\n');
  await writeFile(join(path, 'prompt.md'), 'You keep papers.');
  expect((await readPersona(path)).persona.prompt).toBe('You keep papers.');
});

test('a problem is reported with exit code 2, and its line and column', async () => {
  await expect(readPersona(await persona('- a'))).rejects.toMatchObject({
    exitCode: 2,
    code: 'persona_invalid',
    message: expect.stringContaining('must be an object with name, version'),
  });
  const wrong = async (text: string, name?: string) =>
    readPersona(await persona(text, name)).catch((error: Error) => error.message);
  expect(await wrong('name: a\nlimits:\n  max_turn: 3')).toContain(
    'p.yaml:3:3: unknown key "limits.max_turn"; did you',
  );
  expect(await wrong('name: a\nmodel: gpt')).toContain('p.yaml:2:8: model: a model is written');
  expect(await wrong('name: a\nprompt: [')).toMatch(/p\.yaml:\d+:\d+: /);
  expect(await wrong('name: a\nhooks:\n  - event: pre_tool_us\n    deny: no')).toContain(
    'p.yaml:3:12: hooks[0].event: there is no hook point "pre_tool_us"; did you mean PreToolUse?',
  );
  expect(await wrong('name: a\nhooks:\n  - event: PreToolUse\n    pattrn: x\n    deny: no')).toContain(
    'p.yaml:4:5: unknown key "hooks[0].pattrn"; did you mean "pattern"?',
  );
  expect(await wrong('name: a\nhooks:\n  - event: post_turn\n    deny: no')).toContain('p.yaml:4:11: hooks[0].deny: ');
  expect(await wrong('name: a\nhooks:\n  - event: post_turn')).toContain('p.yaml:3:5: hooks[0]: it has no handler');
  expect(await wrong('name: a\nlimits: {depth: 9}')).toMatch(/p\.yaml:2:17: limits\.depth: /);
  expect(await wrong('name: a\non_finish: {}')).toContain('p.yaml:2:12: on_finish: it has no handler');
  expect(await wrong('name: a\non_finish: {returns: {bdy: x}}')).toContain('p.yaml:2:22: on_finish.returns: ');
  expect(await wrong('name: a\nhandoffs: [b, a]')).toContain('p.yaml:2:15: handoffs[1]: ');
  expect(await wrong('name: a\nmodes:\n  __proto__: {prompt: x}')).toContain('p.yaml:3:14: modes.__proto__: ');
  expect(await wrong('{"name": "a",\n "promt": ""}', 'p.json')).toContain('p.json:2:2: unknown key "promt"');
});

test('a file that is not UTF-8 is rejected, and a byte order mark is skipped', async () => {
  const path = join(folder, 'marked');
  await mkdir(join(path, 'skills/a'), { recursive: true });
  await writeFile(join(path, 'persona.yaml'), '\uFEFFname: marked\r\n');
  await writeFile(join(path, 'prompt.md'), '\uFEFFYou read.');
  await writeFile(join(path, 'skills/a/SKILL.md'), '\uFEFF---\r\nname: a\r\ndescription: How.\r\n---\r\nDo it.\r\n');
  expect((await readPersona(path)).persona).toMatchObject({
    name: 'marked',
    prompt: 'You read.',
    skills: [{ name: 'a', body: 'Do it.' }],
  });
  const latin = join(folder, 'latin.yaml');
  await writeFile(latin, Buffer.from('name: latin\nprompt: "caf\u00e9"\n', 'latin1'));
  await expect(readPersona(latin)).rejects.toThrow('latin.yaml: is not UTF-8');
  await expect(readPersona('/dev/null')).rejects.toThrow('/dev/null: is a device, not a regular file');
});

test.each([
  ['', /p\.yaml: is empty/],
  ['name: a\n---\nname: b\n', /p\.yaml:2:1: a second document begins here/],
  [`name: a\nmodel: ${'{a: '.repeat(20_000)}1${'}'.repeat(20_000)}\n`, /p\.yaml:\d+:\d+: it is nested too deeply/],
  [
    `name: a\na: &a [${'x, '.repeat(20)}]\nb: &b [${'*a, '.repeat(20)}]\nc: [${'*b, '.repeat(20)}]\n`,
    /its aliases expand to a too large value/,
  ],
])('problems of YAML are reported in plain words: %j', async (text, message) => {
  await expect(readPersona(await persona(text))).rejects.toThrow(message);
});

describe('skills', () => {
  const skill = (name: string, more = '') => `---\nname: ${name}\ndescription: How to ${name}.\n${more}---\n\nDo it.\n`;
  async function reviewer(name: string, files: Readonly<Record<string, string>>): Promise<string> {
    const path = join(folder, name);
    for (const [file, text] of Object.entries({ 'persona.yaml': `name: ${name}\n`, ...files })) {
      await mkdir(join(path, file, '..'), { recursive: true });
      await writeFile(join(path, file), text);
    }
    return path;
  }
  const refusal = async (path: string) => readPersona(path).catch((error: Error) => error.message);

  test('of a folder are read in the order of their names, without hidden files', async () => {
    const path = await reviewer('whole', {
      'skills/zeta/SKILL.md': skill('zeta', 'license: MIT\n'),
      'skills/alpha/SKILL.md': skill('alpha'),
      'skills/alpha/references/forms.md': '# Forms',
      'skills/alpha/logo.bin': '\0',
      'skills/alpha/.DS_Store': 'x',
      'skills/.git/SKILL.md': 'x',
    });
    expect((await readPersona(path)).persona.skills).toEqual([
      {
        name: 'alpha',
        description: 'How to alpha.',
        body: 'Do it.',
        files: [
          { path: 'logo.bin', base64: 'AA==' },
          { path: 'references/forms.md', text: '# Forms' },
        ],
      },
      { name: 'zeta', description: 'How to zeta.', body: 'Do it.' },
    ]);
  });

  test('may be selected by name, or added by path', async () => {
    await reviewer('shared', { 'away/SKILL.md': skill('away') });
    const path = await reviewer('naming', {
      'persona.yaml': 'name: naming\nskills: [near, ../shared/away]\n',
      'skills/near/SKILL.md': skill('near'),
      'skills/unnamed/SKILL.md': skill('unnamed'),
    });
    expect((await readPersona(path)).persona.skills?.map(({ name }) => name)).toEqual(['near', 'away']);
  });

  test.each<[string, Record<string, string>, RegExp]>([
    ['without a SKILL.md', { 'skills/a/x.md': '' }, /skills\/a\/SKILL\.md: a skill needs this file/],
    ['without front matter', { 'skills/a/SKILL.md': 'Do it.' }, /SKILL\.md:1:1: must begin with front matter/],
    ['without a description', { 'skills/a/SKILL.md': '---\nname: a\ndesciption: x\n---\n' }, /description: is missing/],
    [
      'of another name than its folder',
      { 'skills/a/SKILL.md': skill('b') },
      /the name is b, and the folder is called a/,
    ],
    ['whose front matter is no YAML', { 'skills/a/SKILL.md': '---\nname: [\n---\n' }, /SKILL\.md:\d+:\d+: /],
    [
      'that is named and not there',
      { 'persona.yaml': 'name: a\nskills: [b]' },
      /yaml:2:10: skills\[0\]: there is no folder/,
    ],
    [
      'that is too large',
      { 'skills/a/SKILL.md': skill('a'), 'skills/a/b': 'x'.repeat(200_000) },
      /limit of a persona is 196608/,
    ],
  ])('%s are rejected with their file', async (name, files, message) => {
    expect(await refusal(await reviewer(`x-${name.replaceAll(/\W/g, '-')}`, files))).toMatch(message);
  });

  test('may not contain a link to a file outside', async () => {
    const path = await reviewer('linking', { 'skills/a/SKILL.md': skill('a'), 'secret.txt': 'secret' });
    await symlink(join(path, 'secret.txt'), join(path, 'skills/a/notes.txt'));
    expect(await refusal(path)).toMatch(/skills\/a\/notes\.txt: is a link/);
  });
});

describe('a folder of a persona', () => {
  const files = { 'persona.yaml': 'name: helper\n', 'prompt.md': 'Help.' };

  async function folderWith(name: string, given: Readonly<Record<string, string>> = files): Promise<string> {
    const path = join(folder, name);
    await mkdir(path);
    for (const [file, text] of Object.entries(given)) await writeFile(join(path, file), text);
    return path;
  }

  test.each(Object.keys(files))('may not have a %s that is a link to a file outside', async (file) => {
    const path = await folderWith(`out-${file}`);
    const secret = join(await folderWith(`secret-${file}`), file);
    await rm(join(path, file));
    await symlink(secret, join(path, file));
    await expect(readPersona(path)).rejects.toThrow(`${file}: is a link; files of a persona must be in its folder`);
  });

  test('may be a link itself, and have links to its own files', async () => {
    const path = await folderWith('linked', { 'v1.yaml': 'name: helper\n', '..v2.md': 'Help.' });
    await symlink('v1.yaml', join(path, 'persona.yaml'));
    await symlink('..v2.md', join(path, 'prompt.md'));
    await symlink(path, join(folder, 'linking-to-it'));
    for (const at of [path, join(folder, 'linking-to-it')])
      expect((await readPersona(at)).persona).toMatchObject({ name: 'helper', prompt: 'Help.' });
  });
});

test('a name is looked up in personas/, and otherwise left to the host', async () => {
  await mkdir(join(folder, 'personas'), { recursive: true });
  await writeFile(join(folder, 'personas/local.yaml'), 'name: local\n');
  expect(await choosePersona('local', folder, null)).toMatchObject({ persona: { name: 'local' } });
  expect(await choosePersona('elsewhere', folder, null)).toBe('elsewhere');
  await expect(choosePersona('./none.yaml', folder, null)).rejects.toThrow('none.yaml: does not exist');
  // What a file works with may lie in a folder of its name.
  await mkdir(join(folder, 'personas/local'));
  expect(await choosePersona('local', folder, null)).toMatchObject({ persona: { name: 'local' } });
  await mkdir(join(folder, 'personas/bare'));
  await expect(choosePersona('bare', folder, null)).rejects.toThrow('bare: this folder has no persona.yaml');
});

describe('a crew', () => {
  const trust = () => new FolderTrust(join(folder, 'ship'), { XDG_STATE_HOME: join(folder, 'state') }, false);
  const namesOf = async (...given: string[]) =>
    (await chooseCrew(given, join(folder, 'ship'), 'mate', trust())).map(({ persona }) => persona.name);

  beforeAll(async () => {
    await mkdir(join(folder, 'ship/personas'), { recursive: true });
    await mkdir(join(folder, 'ship/empty'));
    for (const name of ['cook', 'mate', 'pilot'])
      await writeFile(join(folder, `ship/personas/${name}.yaml`), `name: ${name}\n`);
  });

  test('consists of the named members, or of the personas of a folder without the lead', async () => {
    expect(await namesOf('pilot', './personas/cook.yaml')).toEqual(['pilot', 'cook']);
    expect(await namesOf('personas')).toEqual(['cook', 'pilot']);
    expect(await namesOf()).toEqual([]);
  });

  test.each([
    ['stoker', /no .*stoker\.yaml.* personas that the host knows need no --crew/],
    ['./stoker.yaml', /stoker\.yaml: does not exist/],
    ['empty', /no persona in/],
  ])('rejects the unknown member %s', async (given, message) => {
    await expect(namesOf(given)).rejects.toMatchObject({ exitCode: 2, message: expect.stringMatching(message) });
  });
});

test('a text that is neither a name nor a path is rejected', async () => {
  await expect(choosePersona('a b', folder, null)).rejects.toMatchObject({
    exitCode: 2,
    message: expect.stringContaining('a file has a dot or a slash'),
  });
});
