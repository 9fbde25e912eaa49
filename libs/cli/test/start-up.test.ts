/** What commands load before they do anything: each module and vendor costs every start. */
import { join } from 'node:path';
import { build, type Metafile } from 'esbuild';
import { beforeAll, expect, test } from 'vitest';

const REPOSITORY = join(import.meta.dirname, '../../..');
const MAIN = 'libs/cli/src/main.ts';

let inputs: Metafile['inputs'];

beforeAll(async () => {
  const { metafile } = await build({
    absWorkingDir: REPOSITORY,
    entryPoints: [MAIN],
    bundle: true,
    splitting: true,
    write: false,
    outdir: 'never-written',
    format: 'esm',
    platform: 'node',
    conditions: ['coxswain-source'],
    metafile: true,
    plugins: [
      {
        name: 'vendors-stay',
        setup({ onResolve }) {
          onResolve({ filter: /^[^./]/ }, ({ path }) =>
            path.startsWith('@coxswain/') ? null : { path, external: true },
          );
        },
      },
    ],
  });
  inputs = metafile.inputs;
});

/** Packages of ours and vendors that a module loads with its static imports, by name. */
function loadedWith(entry: string): Set<string> {
  const modules = [entry];
  const packages = new Set<string>();
  for (const module of modules) {
    for (const { path, kind, external } of inputs[module]?.imports ?? []) {
      if (kind === 'dynamic-import') continue;
      if (external) {
        if (!path.startsWith('node:')) packages.add(/^(@[^/]+\/)?[^/]+/.exec(path)?.[0] ?? path);
      } else if (!modules.includes(path)) modules.push(path);
    }
  }
  for (const module of modules) packages.add(module.replace(/\/src\/.*$/, ''));
  return packages;
}

test('cox --help loads the command table, and no schema and no vendor', () => {
  expect([...loadedWith(MAIN)].sort()).toEqual(['libs/cli', 'libs/protocol']);
});

test.each(['approve', 'attach', 'cancel', 'run', 'steer', 'session/list', 'session/show', 'session/watch'])(
  'cox %s loads neither the session engine nor the MCP SDK before it connects',
  (command) => {
    const loaded = loadedWith(`libs/cli/src/commands/${command}.ts`);
    expect(loaded).toContain('libs/client');
    for (const heavy of ['libs/session', 'libs/turn', 'libs/adapters/memory', '@modelcontextprotocol/sdk'])
      expect(loaded).not.toContain(heavy);
  },
);

test('a session host loads the MCP SDK only for a session with MCP servers', () => {
  expect(loadedWith('services/sessions/src/mod.ts')).not.toContain('@modelcontextprotocol/sdk');
});
