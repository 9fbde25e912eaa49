/** What commands load before they do anything: each module and vendor costs every start. */
import { readdirSync } from 'node:fs';
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

const COMMANDS = readdirSync(join(REPOSITORY, 'libs/cli/src/commands'), { recursive: true, encoding: 'utf8' });
/** These need no bus, or need the packages to answer their client before a bus is open. */
const WITHOUT_A_BUS: ReadonlySet<string> = new Set(['acp.ts', 'mcp.ts', 'persona/files.ts']);

test.each(COMMANDS.filter((file) => file.endsWith('.ts') && !WITHOUT_A_BUS.has(file)))(
  'commands/%s loads neither the session engine nor the MCP SDK nor a YAML parser before it connects',
  (file) => {
    const loaded = loadedWith(`libs/cli/src/commands/${file}`);
    for (const heavy of ['libs/session', 'libs/turn', '@modelcontextprotocol/sdk', 'ajv', 'yaml', 'xstate'])
      expect(loaded).not.toContain(heavy);
  },
);

test('a session host loads a YAML parser only for a file in YAML', () => {
  expect(loadedWith('services/sessions/src/mod.ts')).not.toContain('yaml');
});

test('a session host loads the MCP SDK only for a session with MCP servers', () => {
  expect(loadedWith('services/sessions/src/mod.ts')).not.toContain('@modelcontextprotocol/sdk');
});
