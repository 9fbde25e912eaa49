/** The files of a folder that need trust, and the trust of the user in them. */
import { cp, mkdir, mkdtemp, readdir, readFile, realpath, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { PersonaFile } from '@coxswain/personas/persona-file';
import { Persona, type PersonaInput } from '@coxswain/protocol';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import {
  choosePersona,
  describeEffects,
  type FileNeedingTrust,
  FolderTrust,
  filesNeedingTrust,
  personaOfFolder,
} from '../src/folders/mod.ts';
import { runCox } from './run-cox.ts';

let base: string;
let folder: string;
beforeEach(async () => {
  base = await realpath(await mkdtemp(join(tmpdir(), 'cox-trust-')));
  folder = join(base, 'clone');
  await write('coxswain.yaml', "hooks: [{ event: post_turn, handler: './policy.mjs' }]\n");
  await write('policy.mjs', "import './lib/words.mjs';\nexport default () => undefined;\n");
  await write('lib/words.mjs', 'throw new Error("it ran");\n');
  await write('personas/wild.yaml', 'name: wild\npermissions: { rules: [{ tool: run_*, action: allow }] }\n');
  await write('personas/meek.yaml', 'name: meek\nprompt: You read.\n');
});
afterEach(() => rm(base, { recursive: true }));

async function write(name: string, text: string): Promise<void> {
  await mkdir(join(folder, name, '..'), { recursive: true });
  await writeFile(join(folder, name), text);
}

const trustIn = (where = folder) => new FolderTrust(where, { XDG_STATE_HOME: join(base, 'state') }, false);
const trusted = async (where = folder) => {
  const trust = trustIn(where);
  return Promise.all((await filesNeedingTrust(where)).map((one) => trust.has(one)));
};

test('a manifest with its modules needs trust, and so does a persona that loosens a rule', async () => {
  expect(await filesNeedingTrust(folder)).toMatchObject([
    {
      name: 'coxswain.yaml',
      effects: [
        'runs code with your rights and your keys: lib/words.mjs, policy.mjs',
        'hook at post_turn: ./policy.mjs',
      ],
    },
    { name: 'personas/wild.yaml', effects: ['allows run_* without asking'] },
  ]);
});

test('trust holds for this folder and this content', async () => {
  expect(await trusted()).toEqual([false, false]);
  await trustIn().trust(await filesNeedingTrust(folder));
  expect(await trusted()).toEqual([true, true]);

  await symlink(folder, join(base, 'link'));
  expect(await trusted(join(base, 'link'))).toEqual([true, true]);
  await cp(folder, join(base, 'copy'), { recursive: true });
  expect(await trusted(join(base, 'copy'))).toEqual([false, false]);

  await write('lib/words.mjs', 'throw new Error("it ran differently");\n');
  expect(await trusted()).toEqual([false, true]);
  await write('personas/wild.yaml', 'name: wild\nprompt: Worse.\npermissions: { default: allow }\n');
  expect(await trusted()).toEqual([false, false]);

  await trustIn().trust(await filesNeedingTrust(folder));
  await trustIn().forget();
  expect(await trusted()).toEqual([false, false]);
});

test('trust is stored outside the folder, for this user only; a damaged file grants nothing', async () => {
  await trustIn().trust(await filesNeedingTrust(folder));
  const kept = join(base, 'state/coxswain/trusted');
  const [name = ''] = await readdir(kept);
  expect((await stat(join(kept, name))).mode & 0o777).toBe(0o600);
  const text = await readFile(join(kept, name), 'utf8');
  await writeFile(join(kept, name), text.slice(0, -5));
  expect(await trusted()).toEqual([false, false]);
  await writeFile(join(kept, name), text.replace(folder, '/elsewhere'));
  expect(await trusted()).toEqual([false, false]);
});

test('cox trust fails if the answer cannot be stored', async () => {
  await writeFile(join(base, 'state'), '');
  const { code, out, err } = await runCox(['trust', '--yes'], {
    INIT_CWD: folder,
    XDG_STATE_HOME: join(base, 'state'),
  });
  expect([code, out]).toEqual([1, '']);
  expect(err).toContain('the answer cannot be stored');
  expect(err).toContain(`folder_not_trusted: ${folder} is not trusted`);
});

test('a named persona that needs trust is rejected without it; a path to it, and a harmless persona, are not', async () => {
  await expect(choosePersona('wild', folder, trustIn())).rejects.toMatchObject({
    code: 'folder_not_trusted',
    message: expect.stringContaining(join(folder, 'personas/wild.yaml')),
  });
  expect(await choosePersona('meek', folder, trustIn())).toMatchObject({ persona: { name: 'meek' } });
  expect(await choosePersona('./personas/wild.yaml', folder, trustIn())).toMatchObject({ persona: { name: 'wild' } });
});

describe('a persona needs trust that', () => {
  const doesOf = (more: Omit<PersonaInput, 'name'>) => {
    const input: PersonaInput = { name: 'p', ...more };
    const file: PersonaFile = { input, persona: Persona.parse(input), place: () => '', folder: '/' };
    return personaOfFolder('/x/personas/p.yaml', file)?.effects ?? null;
  };

  test.each<[string, Omit<PersonaInput, 'name'>, string]>([
    [
      'starts a command',
      { mcp_servers: { s: { command: 'sh', args: ['-c', 'id'], env: { A: `\${KEY}` } } } },
      `MCP server s: starts sh -c id (A=\${KEY})`,
    ],
    [
      'sends variables to a server',
      { mcp_servers: { s: { url: 'http://x.test', headers: { A: `\${KEY}` } } } },
      `MCP server s: connects to http://x.test (A=\${KEY})`,
    ],
    [
      'names an address for its model',
      { model: { name: 'openai/m', base_url: 'http://x.test' } },
      'sends its prompts to http://x.test',
    ],
    [
      'sets options of its provider, such as an MCP server that the provider calls',
      { model: { name: 'anthropic/m', provider_options: { anthropic: { mcpServers: [{ url: 'http://x.test' }] } } } },
      'sets mcpServers in the options of anthropic: [{"url":"http://x.test"}]',
    ],
    [
      'allows a tool that acts',
      { permissions: { rules: [{ tool: 'edit_file', when: 'path == "a"', action: 'allow' }] } },
      'allows edit_file without asking when path == "a"',
    ],
    [
      'allows a tool that is not built in',
      { permissions: { rules: [{ tool: 'pay', action: 'allow' }] } },
      'allows pay without asking',
    ],
    [
      'allows a glob',
      { permissions: { rules: [{ tool: 'read_*', action: 'allow' }] } },
      'allows read_* without asking',
    ],
    ['allows every other tool', { permissions: { default: 'allow' } }, 'allows every other tool without asking'],
    [
      'answers a hook by itself',
      { hooks: [{ event: 'permission_request', returns: { decision: 'allow' } }] },
      'decides by itself at permission_request',
    ],
  ])('%s', (_what, more, line) => {
    expect(doesOf(more)).toEqual([line]);
  });

  test('hides no option of its provider behind the text of others', () => {
    const pad = 'x'.repeat(300);
    const anthropic = { first: pad, mcpServers: [{ url: 'http://x.test' }], last: pad };
    const effects = doesOf({ model: { name: 'anthropic/m', provider_options: { anthropic } } }) ?? [];
    expect(describeEffects('/clone', [{ name: 'p.yaml', digest: '', effects }])).toContain('http://x.test');
  });

  test('is no harmless persona', () => {
    expect(
      doesOf({
        prompt: 'x',
        permissions: { rules: ['read_file', 'delegate'].map((tool) => ({ tool, action: 'allow' })), default: 'deny' },
      }),
    ).toBeNull();
  });
});

test('the question shows effects without spaces, long text, many lines or control characters that hide them', () => {
  const brought: FileNeedingTrust = {
    name: 'coxswain.yaml',
    digest: '',
    effects: [
      `starts a${' '.repeat(500)}b \u001b[2Jc\u202ed`,
      `${'x'.repeat(900)} && rm -rf /`,
      ...Array(30).fill('more'),
    ],
  };
  const text = describeEffects('/home/ann/clone', [brought]);
  expect(text).toContain('starts a b [2Jc d\n');
  expect(text).toMatch(/\[\d+ characters more\] x+ && rm -rf \/\n/);
  expect(text).toContain('and 8 lines more\n');
  expect(text.split('\n').every((line) => line.length < 250)).toBe(true);
});
