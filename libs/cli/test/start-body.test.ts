import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { COMMANDS, parseLine } from '../src/line/mod.ts';
import { expectRoot, keysFound, sessionIdOf, startBody } from '../src/run/mod.ts';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'cox-start-'));
  await writeFile(join(folder, 's.yaml'), 'turns: [{text: x}]');
  await writeFile(join(folder, 'mcp.json'), '{"mcpServers": {"files": {"command": "x"}}}');
  await writeFile(join(folder, 'bare.json'), '{"files": {"command": "x"}}');
  await writeFile(join(folder, 'schema.json'), '{"type": "object"}');
  await writeFile(join(folder, 'loop.json'), '{"items": {"$ref": "#"}}');
  await writeFile(join(folder, 'p.yaml'), 'name: p\nmodel: openai/m\n');
});
afterAll(() => rm(folder, { recursive: true }));

function body(argv: string[], env: NodeJS.ProcessEnv = {}) {
  const line = parseLine(['run', 'do it', ...argv], COMMANDS);
  if (line.kind !== 'command') throw new Error(line.kind);
  return startBody({ flags: line.flags, env: { INIT_CWD: folder, ...env } }, 'do it');
}

test('a root folder that does not exist is rejected', () => {
  const line = parseLine(['run', 'do it', '--root', 'missing'], COMMANDS);
  if (line.kind !== 'command') throw new Error(line.kind);
  expect(() => expectRoot(line, { root: join(folder, 'missing') })).toThrow(/--root .*missing is not a folder/);
  expect(() => expectRoot(line, { root: join(folder, 'p.yaml') })).toThrow(/is not a folder/);
  expect(() => expectRoot(line, { root: folder })).not.toThrow();
});

test('the flags make the body of a start, whose root is the working directory', async () => {
  const made = await body(
    '--model openai-compatible/x --base-url http://127.0.0.1:1 --deny run_* --allow * --max-turns 3 --mcp mcp.json'.split(
      ' ',
    ),
  );
  expect(made).toEqual({
    prompt: 'do it',
    root: folder,
    model: 'openai-compatible/x',
    base_url: 'http://127.0.0.1:1',
    mcp_servers: { files: { command: 'x', args: [] } },
    permissions: {
      rules: [
        { tool: 'run_*', action: 'deny' },
        { tool: '*', action: 'allow' },
      ],
    },
    max_turns: 3,
  });
});

test('the output schema comes from a JSON file', async () => {
  expect(await body('-m a/b --output-schema schema.json'.split(' '))).toMatchObject({ output: { type: 'object' } });
  await expect(body('-m a/b --output-schema p.yaml'.split(' '))).rejects.toThrow('p.yaml is not JSON');
  await expect(body('-m a/b --output-schema loop.json'.split(' '))).rejects.toThrow(
    'loop.json: the output schema is rec',
  );
});

test('limits of tokens, money and time', async () => {
  const made = await body('--model a/b --max-tokens 5000 --max-usd 0.50 --max-time 90s'.split(' '));
  expect(made).toMatchObject({ limits: { tokens: 5_000, usd: 0.5, wall_time_ms: 90_000 } });
  expect(await body(['--model', 'a/b'])).not.toHaveProperty('limits');
});

test.each([
  ['500ms', 500],
  ['1.5s', 1_500],
  ['5m', 300_000],
  ['2h', 7_200_000],
  ['1d', 86_400_000],
  ['365d', 31_536_000_000],
])('--max-time %s is %i ms', async (text, ms) => {
  expect(await body(['--model', 'a/b', '--max-time', text])).toMatchObject({ limits: { wall_time_ms: ms } });
});

test.each([
  ['--max-time', '90', /unit, such as 500ms, 90s/],
  ['--max-time', '0s', /unit/],
  ['--max-time', '366d', /unit/],
  ['--max-time', '-1s', /unit/],
  ['--max-usd', '$5', /sum from/],
  ['--max-usd', '0', /sum from/],
  ['--max-usd', '1e3', /sum from/],
  ['--max-usd', '1000000.1', /sum from/],
  ['--max-tokens', '0', /whole number/],
  ['--max-tokens', '1.5', /whole number/],
])('%s %s is rejected with the flag', async (flag, text, problem) => {
  await expect(body(['--model', 'a/b', `${flag}=${text}`])).rejects.toThrow(problem);
  await expect(body(['--model', 'a/b', `${flag}=${text}`])).rejects.toThrow(flag);
});

test('--root is relative to the working directory', async () => {
  expect(await body(['--model', 'a/b', '--root', 'sub'])).toMatchObject({ root: join(folder, 'sub') });
});

test('the relative path of a script is relative to the working directory', async () => {
  expect(await body(['--model', 'scripted/s.yaml'])).toMatchObject({ model: `scripted/${join(folder, 's.yaml')}` });
  expect(await body(['--model', 'scripted/elsewhere.yaml'])).toMatchObject({ model: 'scripted/elsewhere.yaml' });
});

test('the model comes from the flag, COX_MODEL, or the persona', async () => {
  expect(await body([], { COX_MODEL: 'a/b' })).toMatchObject({ model: 'a/b' });
  expect(await body(['--model', 'c/d'], { COX_MODEL: 'a/b' })).toMatchObject({ model: 'c/d' });
  expect(await body(['--persona', './p.yaml'])).not.toHaveProperty('model');
});

test('without a model, the error names the flag and the variables of API keys', async () => {
  await expect(body([])).rejects.toMatchObject({ exitCode: 2 });
  await expect(body([])).rejects.toThrow(/--model provider\/name.*COX_MODEL.*ANTHROPIC_API_KEY.*OPENAI_API_KEY/);
});

test.each([
  [['--model', 'gpt'], '--model gpt'],
  [['--model', 'a/b', '--base-url', 'ftp://x'], '--base-url'],
  [['--model', 'a/b', '--mcp', 'bare.json'], '--mcp'],
  [['--model', 'a/b', '--mcp', 'none.json'], '--mcp'],
  [['--model', 'a/b', '--max-turns', '0'], '--max-turns'],
])('%j is rejected with the flag', async (argv, flag) => {
  await expect(body(argv)).rejects.toMatchObject({ exitCode: 2, message: expect.stringContaining(flag) });
});

test('an empty id, and one with wildcards, a dot or too many characters, is rejected', () => {
  for (const id of ['', '*', '>', 'a.b', 'x'.repeat(65)]) {
    const line = parseLine(['run', 'x', `--id=${id}`], COMMANDS);
    if (line.kind !== 'command') throw new Error(line.kind);
    expect(() => sessionIdOf(line), id).toThrow('--id');
  }
});

test('API keys are reported by the names of their variables', () => {
  expect(keysFound({ OPENAI_API_KEY: 'sk-1', ANTHROPIC_API_KEY: '  ' })).toEqual(['OPENAI_API_KEY']);
});
