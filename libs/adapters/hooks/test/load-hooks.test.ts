/** Handlers from files: what is loaded, and how what is wrong is told. */

import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { bundleModule, HookModuleError } from '@coxswain/handlers/load';
import { HOOK_CATALOGUE, HOOK_POINTS, type HookPoint, type JsonObject } from '@coxswain/protocol';
import { afterAll, describe, expect, test } from 'vitest';
import { inspectManifest, loadHooks, loadManifest, loadTools, ManifestError } from '../src/mod.ts';
import { askFirst, payloadOf, toolPayload } from './ask.ts';

const root = realpathSync(mkdtempSync(join(tmpdir(), 'load-hooks-')));
afterAll(() => rmSync(root, { recursive: true }));

let serial = 0;
/** Writes files into a folder of their own. @returns the first one's path. */
function written(files: Readonly<Record<string, string>>): string {
  const folder = join(root, String(++serial));
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
  return join(folder, Object.keys(files)[0] as string);
}

async function failure(loading: Promise<unknown>): Promise<Error> {
  return loading.then(
    () => {
      throw new Error('it was loaded');
    },
    (error: Error) => error,
  );
}

describe('a module', () => {
  const said = async (file: string) => {
    const { hooks } = await loadHooks(file, 'policy');
    return askFirst(hooks, 'post_turn');
  };

  test('in TypeScript, with files of its own, types, and where it lies', async () => {
    const file = written({
      'policy.ts': `
        import { defineHooks } from '@coxswain/client';
        import { body } from './lib/words.ts';
        import { basename } from 'node:path';
        export default defineHooks({ post_turn: ({ turn }: { turn: number }) => ({ body: body(turn), tags: [basename(import.meta.url)] }) });
      `,
      'lib/words.ts': "export const body = (turn: number): string => 'turn ' + turn + ' in ' + import.meta.url;",
    });
    const url = pathToFileURL(join(dirname(file), 'lib/words.ts')).href;
    expect(await said(file)).toEqual({
      status: 'returned',
      raw: { body: `turn 3 in ${url}`, tags: ['policy.ts'] },
    });
    const { files } = await loadHooks(file, 'policy');
    expect([...files].sort()).toEqual([join(dirname(file), 'lib/words.ts'), file].sort());
  });

  test('with the helpers of the client library, also where it is not installed', async () => {
    const file = written({
      'policy.ts': `
        import { allow, ask, defineHooks, deny, remind, rewrite } from '@coxswain/client';
        export default defineHooks({
          session_start: () => [remind('mind'), remind('the rocks', { ttlTurns: 2 })],
          gate_tool_calls: ({ calls }) => calls.map(({ name }) => (name === 'rm' ? deny('no') : allow())),
          permission_asked: () => ask('sure?'),
          PreToolUse: ({ tool }) => remind('mind', { answer: rewrite({ path: tool.name }) }),
        });
      `,
    });
    const { hooks } = await loadHooks(file, 'policy');
    const raw = async (point: HookPoint, payload: JsonObject) => (await askFirst(hooks, point, payload)) as unknown;
    const returned = (value: unknown) => ({ status: 'returned', raw: value });
    expect(await raw('session_start', payloadOf('session_start'))).toEqual(
      returned([{ body: 'mind' }, { body: 'the rocks', ttl_turns: 2 }]),
    );
    const calls = ['rm', 'ls'].map((name) => ({ name, args: {}, call_id: name }));
    expect(await raw('gate_tool_calls', payloadOf('gate_tool_calls', { calls }))).toEqual(
      returned([{ allow: false, reason: 'no' }, { allow: true }]),
    );
    expect(await raw('permission_asked', toolPayload('permission_asked'))).toEqual(
      returned({ decision: 'ask', reason: 'sure?' }),
    );
    const rewritten = Object.fromEntries([
      ['reminder', { body: 'mind' }],
      ['then', { args: { path: 'run_command' } }],
    ]);
    expect(await raw('PreToolUse', toolPayload('PreToolUse'))).toEqual(returned(rewritten));
  });

  test('as it stands now, whatever was loaded before', async () => {
    const file = written({
      'policy.js': "import { body } from './words.js'; export default { post_turn: () => ({ body }) };",
      'words.js': "export const body = 'old';",
    });
    expect(await said(file)).toMatchObject({ raw: { body: 'old' } });
    writeFileSync(join(dirname(file), 'words.js'), "export const body = 'new';");
    expect(await said(file)).toMatchObject({ raw: { body: 'new' } });
  });

  test('in CommonJS, with packages that are installed beside it', async () => {
    const file = written({
      'policy.cjs':
        "const { sep } = require('node:path'); const { word } = require('words'); module.exports = { post_turn: () => ({ body: word + sep }) };",
      'node_modules/words/package.json': '{"name": "words", "main": "index.js"}',
      'node_modules/words/index.js': "exports.word = 'from a package';",
    });
    expect(await said(file)).toMatchObject({ raw: { body: 'from a package/' } });
  });

  test.skipIf(process.platform === 'win32').each([
    ['/dev/zero', 'policy.ts'],
    ['/dev/zero', 'lib.ts'],
  ])('that leads to the device %s by %s is refused, and not read', async (device, name) => {
    const policy = written({ 'policy.ts': "import './lib.ts'; export default {};", 'lib.ts': '' });
    const link = join(dirname(policy), name);
    rmSync(link);
    symlinkSync(device, link);
    expect((await failure(loadHooks(policy, 'policy'))).message).toMatch(/is a device, not a regular file/);
  });

  test.skipIf(process.platform === 'win32').each(['package.json', 'tsconfig.json'])(
    'with a link to a device as its %s is refused, and it is not read',
    async (name) => {
      const policy = written({ 'policies/policy.ts': 'export default {};' });
      const folder = dirname(dirname(policy));
      symlinkSync('/dev/zero', join(folder, name));
      expect((await failure(loadHooks(policy, 'policy'))).message).toMatch(
        `${policy}: the ${name} in ${folder} is a device, not a regular file`,
      );
    },
  );

  test.skipIf(process.platform === 'win32')('that esbuild does not finish is given up, and others load', async () => {
    const policy = written({ 'policy.ts': 'export default {};', 'tsconfig.json': '{"extends": "./pipe.json"}' });
    execFileSync('mkfifo', [join(dirname(policy), 'pipe.json')]);
    expect((await failure(bundleModule(policy, 200))).message).toMatch(
      `${policy}: it was not bundled within 200 ms: try again if this machine is busy`,
    );
    expect((await bundleModule(written({ 'other.ts': 'export default {};' }))).files).toHaveLength(1);
  });

  test('that is a folder is refused, by its path', async () => {
    const folder = dirname(written({ 'policy.ts': '' }));
    expect((await failure(loadHooks(folder, 'policy'))).message).toBe(`${folder}: it is a folder; name a module in it`);
  });

  test.each<[string, Record<string, string>, RegExp]>([
    ['that is not there', { 'other.ts': '' }, /\/policy\.ts: there is no such file$/],
    ['that does not parse', { 'policy.ts': '\nexport default {' }, /\/policy\.ts:2: Expected/],
    [
      'that imports what is not there',
      { 'policy.ts': "\n\nimport './gone.ts'; export default {};" },
      /\/policy\.ts:3: Could not resolve "\.\/gone\.ts"/,
    ],
    [
      'that imports a package that is not installed',
      { 'policy.ts': "\nimport 'no-such-words';" },
      /\/policy\.ts:2: Could not resolve "no-such-words": install the package, or correct its name$/,
    ],
    ['that throws', { 'policy.ts': "\nthrow new Error('not today');" }, /\/policy\.ts:2: not today/],
    [
      'that imports what throws',
      { 'policy.ts': "import './lib/words.ts';", 'lib/words.ts': 'interface A {\n  b: 1;\n}\nnull.x;' },
      /\/lib\/words\.ts:4: Cannot read/,
    ],
    ['that throws what has no stack', { 'policy.ts': "throw 'not today';" }, /\/policy\.ts: not today/],
    ['without handlers', { 'policy.ts': 'export const x = 1;' }, /\/policy\.ts: it has no handlers/],
    [
      'with a point that there is not',
      { 'policy.ts': 'export default { post_trun: () => {} };' },
      /\/policy\.ts: point: there is no hook point "post_trun"/,
    ],
    [
      'with a pattern that is none',
      { 'policy.ts': 'export default { PreToolUse: { pattern: "(", handler: () => {} } };' },
      /\/policy\.ts: PreToolUse: pattern: /,
    ],
    [
      'with one wrong definition of several',
      { 'policy.ts': 'export default { PreToolUse: [() => {}, { timeoutMs: 0, handler: () => {} }] };' },
      /\/policy\.ts: PreToolUse\[1\]: timeoutMs: /,
    ],
    [
      'with a class for a handler',
      { 'policy.ts': 'export default { PreToolUse: class Policy {} };' },
      /\/policy\.ts: PreToolUse: handler: it is a class/,
    ],
  ])('%s is refused, by its path', async (_what, files, message) => {
    const file = join(dirname(written(files)), 'policy.ts');
    const error = await failure(loadHooks(file, 'policy'));
    expect(error).toBeInstanceOf(HookModuleError);
    expect(error.message).toMatch(message);
  });
});

describe('a manifest', () => {
  const policy = {
    'policy.js': `
      export const rejectSecrets = ({ prompt }) => !prompt.includes('sk-');
      export default () => ({ body: 'from the default' });
      export const number = 4;
    `,
  };
  const load = (yaml: string) => loadManifest(written({ 'coxswain.yaml': yaml, ...policy }));

  test('declares hooks, with their settings', async () => {
    const { hooks, files } = await load(`
hooks:
  - { event: UserPromptSubmit, handler: './policy.js#rejectSecrets', priority: -5, timeout_ms: 300, on_error: fail_open }
  - event: post_turn
    handler: ./policy.js
    persona: 'rev*'
    id: mine
  - { event: PreToolUse, pattern: rm, deny: never }
  - { event: PostToolUse, pattern: 'run_*', max_output: 4000 }
  - { event: OnBudgetThreshold(80), handler: ./policy.js }
  - { event: session_start, returns: { body: Read AGENTS.md first. } }
`);
    const table = hooks.table();
    expect(table).toMatchObject([
      {
        id: 'manifest-UserPromptSubmit-1',
        point: 'user_prompt_submit',
        priority: -5,
        timeout_ms: 300,
        on_error: 'fail_open',
      },
      { id: 'mine', point: 'post_turn', persona: 'rev*' },
      { point: 'PreToolUse', pattern: 'rm', deny: 'never' },
      { point: 'PostToolUse', pattern: 'run_*', max_output: 4_000, no_handler: true },
      { point: 'OnBudgetThreshold', pct: 80 },
      { point: 'session_start', returns: { body: 'Read AGENTS.md first.' } },
    ]);
    expect(table.every(({ source }) => source === 'manifest')).toBe(true);
    expect(files.map((file) => file.replace(/.*\//, ''))).toEqual(['coxswain.yaml', 'policy.js']);
    const payload = payloadOf('user_prompt_submit', { prompt: 'sk-1', origin: 'prompt' });
    expect(await askFirst(hooks, 'user_prompt_submit', payload)).toEqual({ status: 'returned', raw: false });
    expect(await askFirst(hooks, 'post_turn')).toMatchObject({ raw: { body: 'from the default' } });
  });

  test('that is a folder is an error without a line', async () => {
    const folder = dirname(written(policy));
    expect((await failure(loadManifest(folder))).message).toBe(`${folder}: the file is a folder, not a regular file`);
  });

  test('declares hooks for points of personas', async () => {
    const points = HOOK_POINTS.filter((point) => HOOK_CATALOGUE[point].surfaces.includes('persona'));
    const lines = points.map((point) => `  - { event: ${point}, persona: 'rev*', step: draft, handler: ./policy.js }`);
    const { hooks } = await load(`hooks:\n${lines.join('\n')}\n`);
    expect(hooks.table()).toMatchObject(points.map((point) => ({ point, persona: 'rev*', step: 'draft' })));
    for (const point of points)
      expect(await askFirst(hooks, point)).toMatchObject({ raw: { body: 'from the default' } });
  });

  test('may be empty', async () => {
    expect((await load('# nothing yet\n')).hooks.table()).toEqual([]);
  });

  test.each<[string, string, RegExp]>([
    ['that is no YAML', 'hooks: [', /:1:9: Flow sequence/],
    ['with a misspelt key', 'hoks: []', /:1:1: hoks: there is no such key/],
    [
      'with a misspelt key of a hook',
      'hooks:\n  - event: post_turn\n    handlr: x',
      /:3:5: hooks\[0\]\.handlr: there is no such key/,
    ],
    ['without an event', 'hooks:\n  - handler: ./policy.js', /:2:5: hooks\[0\]\.event: /],
    [
      'with an event that there is not',
      'hooks:\n  - handler: ./policy.js\n    event: post_trun',
      /:3:12: hooks\[0\]: event: there is no hook point "post_trun"; did you mean PostTurn\?/,
    ],
    ['without a handler', 'hooks:\n  - event: post_turn', /:2:5: hooks\[0\]: it has no handler/],
    [
      'with a file that is not there',
      'hooks:\n  - event: post_turn\n    handler: ./gone.js#x',
      /:3:14: hooks\[0\]\.handler: .*gone\.js/,
    ],
    [
      'with a function that is not there',
      'hooks:\n  - event: post_turn\n    handler: ./policy.js#rejectSecret',
      /:3:14: hooks\[0\]\.handler: .*policy\.js has no function rejectSecret; it exports default, rejectSecrets/,
    ],
    [
      'with an empty name of a function',
      'hooks:\n  - event: post_turn\n    handler: "./policy.js#"',
      /:3:14: hooks\[0\]\.handler: write \.\/file\.js#name/,
    ],
    ['with a key twice', 'hooks: []\nhooks: []', /:2:1: Map keys must be unique$/],
    [
      'with an export that is no function',
      'hooks:\n  - event: post_turn\n    handler: ./policy.js#number',
      /has no function number/,
    ],
    [
      'with a member of Object',
      'hooks:\n  - event: post_turn\n    handler: ./policy.js#toString',
      /has no function toString/,
    ],
    [
      'with a pattern that is none',
      'hooks:\n  - event: post_turn\n    handler: ./policy.js\n    pattern: "("',
      /:4:14: hooks\[0\]: pattern: /,
    ],
    [
      'with a time-out that is none',
      'hooks:\n  - event: post_turn\n    handler: ./policy.js\n    timeout_ms: 5s',
      /:4:17: hooks\[0\]: timeout_ms: /,
    ],
    [
      'with one id twice',
      'hooks:\n  - { event: post_turn, handler: ./policy.js, id: a }\n  - { event: post_turn, handler: ./policy.js, id: a }',
      /:3:51: hooks\[1\]: id: hook a is already registered at post_turn/,
    ],
  ])('%s is refused, by file, line and column', async (_what, yaml, message) => {
    const error = await failure(load(yaml));
    expect(error).toBeInstanceOf(ManifestError);
    expect(error.message).toMatch(/^\/.*\/coxswain\.yaml:\d+:\d+: /);
    expect(error.message).toMatch(message);
  });
});

describe('tools of a manifest', () => {
  const stock = {
    'stock.js': `
      const tool = (name, more) => ({ name, description: 'x', inputSchema: { type: 'object' }, execute: () => name, ...more });
      export const level = tool('level');
      export const broken = tool('broken', { run: () => 'x' });
      export const builtIn = tool('read_file');
      export const rule = () => true;
      export default [tool('one'), tool('two')];
    `,
  };
  const load = (yaml: string) => loadManifest(written({ 'coxswain.yaml': yaml, ...stock }));

  test('are one export or a list, next to its hooks', async () => {
    const { tools, hooks, files } = await load(`
tools: [{ handler: './stock.js#level' }, { handler: ./stock.js }]
hooks: [{ event: PostTurn, handler: './stock.js#rule' }]
`);
    expect(tools.map(({ name }) => name)).toEqual(['level', 'one', 'two']);
    expect(hooks.table()).toHaveLength(1);
    expect(files.map((file) => basename(file))).toEqual(['coxswain.yaml', 'stock.js']);
  });

  test('can be served on the bus', async () => {
    const manifest = written({ 'coxswain.yaml': "tools: [{ handler: './stock.js#level' }]\n", ...stock });
    expect((await loadTools(manifest)).tools.map(({ name }) => name)).toEqual(['level']);
    expect((await failure(loadTools(written({ 'coxswain.yaml': 'hooks: []\n' })))).message).toContain('no tools');
  });

  test.each([
    [
      "tools: [{ handler: './stock.js#rule' }]",
      ':1:20: tools\\[0\\].handler: .*has no tool rule; it exports broken, builtIn, default, level',
    ],
    ["tools: [{ handler: './stock.js#broken' }]", 'run is named execute'],
    ["tools: [{ handler: './stock.js#builtIn' }]", 'read_file: a host has a tool of this name itself'],
    ['tools: [{ handler: ./stock.js }, { handler: ./stock.js }]', 'tools\\[1\\].handler: two tools are named one'],
    ['tools: [{ handler: ./stock.js, needsApproval: true }]', 'needsApproval: there is no such key'],
  ])('%s is refused with its place', async (yaml, words) => {
    expect((await failure(load(yaml))).message).toMatch(new RegExp(words));
  });

  test('are inspected without running them', async () => {
    const manifest = written({
      'coxswain.yaml': 'tools: [{ handler: ./a.js }]\n',
      'a.js': "throw new Error('it ran');",
    });
    expect(await inspectManifest(manifest)).toMatchObject({ tools: [{ handler: './a.js' }], modules: ['a.js'] });
  });
});

describe('the content of a manifest', () => {
  const files: Readonly<Record<string, string>> = {
    'coxswain.yaml': "hooks: [{ event: post_turn, handler: './policy.ts' }, { event: pre_tool_use, deny: no }]\n",
    'package.json': '{ "type": "module", "imports": { "#near": "./near.js" } }',
    'policy.ts': "import words from './lib/words.json';\nimport '#near';\nimport 'far';\nexport default () => words;\n",
    'lib/words.json': '{}',
    'near.js': "import './nearer.js';\nthrow new Error('it ran');\n",
    'nearer.js': '',
    'node_modules/far/package.json': '{ "name": "far", "main": "index.js" }',
    'node_modules/far/index.js': '',
  };

  test('is inspected whole without running it: the modules of its own package, and the names of others', async () => {
    expect(await inspectManifest(written(files))).toMatchObject({
      hooks: [
        { event: 'post_turn', handler: './policy.ts' },
        { event: 'pre_tool_use', handler: undefined },
      ],
      modules: ['lib/words.json', 'near.js', 'nearer.js', 'policy.ts'],
      packages: ['far'],
    });
  });

  test('has the same digest in another folder, and another one for another byte in any file', async () => {
    const digestOf = async (more: Readonly<Record<string, string>> = {}) =>
      (await inspectManifest(written({ ...files, ...more }))).digest;
    const digest = await digestOf();
    expect(await digestOf()).toBe(digest);
    for (const name of ['coxswain.yaml', 'policy.ts', 'lib/words.json', 'near.js', 'nearer.js'])
      expect(await digestOf({ [name]: `${files[name]} ` }), name).not.toBe(digest);
  });

  test('that has changed since is not run', async () => {
    const manifest = written({ ...files, 'near.js': "import './nearer.js';" });
    const { digest } = await inspectManifest(manifest);
    await loadManifest(manifest, 'manifest', digest);
    writeFileSync(join(dirname(manifest), 'nearer.js'), "throw new Error('it ran');");
    expect((await failure(loadManifest(manifest, 'manifest', digest))).message).toContain('has changed since');
  });
});
