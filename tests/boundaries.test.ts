import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { findViolations, loadProjects, type Project, type Violation } from '../scripts/check-boundaries.ts';

const repository = resolve(import.meta.dirname, '..');
let scratch: string;
let projects: Project[];

beforeAll(() => {
  scratch = mkdtempSync(join(tmpdir(), 'boundaries-test-'));
  projects = loadProjects(repository);
}, 60_000);

afterAll(() => rmSync(scratch, { recursive: true, force: true }));

test('each project has one layer, read from its nx tags', () => {
  expect(Object.fromEntries(projects.map(({ name, layer }) => [name, layer]))).toMatchObject({
    '@coxswain/protocol': 'protocol',
    '@coxswain/turn': 'turn',
    '@coxswain/ports': 'ports',
    '@coxswain/bus': 'bus',
    '@coxswain/handlers': 'handlers',
    '@coxswain/session': 'session',
    '@coxswain/adapter-hooks': 'adapter',
    '@coxswain/adapter-nats': 'adapter',
    '@coxswain/client': 'client',
    '@coxswain/cli': 'cli',
    '@coxswain/sessions': 'service',
  });
});

describe('a planted import is caught', () => {
  let copy: string;
  let caught: Violation[];
  const fileOf = (index: number, folder: string) => `${folder}/src/planted-${index}.ts`;
  beforeAll(() => {
    copy = join(scratch, 'copy');
    // Each file is checked by itself: the source of the workspace is not needed, and `npm run check:boundaries` checks it.
    for (const { root } of projects) {
      mkdirSync(join(copy, root, 'src'), { recursive: true });
      cpSync(join(repository, root, 'package.json'), join(copy, root, 'package.json'));
    }
    expect(findViolations(copy, projects)).toEqual([]);
    for (const [index, [, folder, code]] of plants.entries())
      writeFileSync(join(copy, fileOf(index, folder)), `// first line\n${code}\n`);
    caught = findViolations(copy, projects);
    for (const [index, [, folder]] of plants.entries()) rmSync(join(copy, fileOf(index, folder)));
  });

  const plants: [name: string, folder: string, code: string, rule: string][] = [
    ['into a page, from Node', 'libs/console', "import 'node:fs';", "layer console may not import Node's node:fs"],
    [
      'into a page, from the machine',
      'libs/console',
      "import '@coxswain/turn';",
      'layer console may not import @coxswain/turn (layer turn)',
    ],
    [
      'upwards, from turn to session',
      'libs/turn',
      "import '@coxswain/session';",
      'layer turn may not import @coxswain/session (layer session)',
    ],
    [
      'as a type only',
      'libs/turn',
      "import type { Journal } from '@coxswain/ports';",
      'layer turn may not import @coxswain/ports (layer ports)',
    ],
    [
      'sideways, from bus to ports',
      'libs/bus',
      "import type { Log } from '@coxswain/ports';",
      'layer bus may not import @coxswain/ports (layer ports)',
    ],
    [
      'upwards, from handlers to an adapter',
      'libs/handlers',
      "import '@coxswain/adapter-hooks';",
      'layer handlers may not import @coxswain/adapter-hooks (layer adapter)',
    ],
    [
      'as a re-export',
      'libs/protocol',
      "export * from '@coxswain/turn';",
      'layer protocol may not import @coxswain/turn (layer turn)',
    ],
    [
      'as a dynamic import',
      'libs/session',
      "export const load = () => import('@coxswain/adapter-nats');",
      'layer session may not import @coxswain/adapter-nats (layer adapter)',
    ],
    [
      'as an import type',
      'libs/ports',
      "export type Runner = import('@coxswain/session').Runner;",
      'layer ports may not import @coxswain/session (layer session)',
    ],
    [
      'from the client to the session',
      'libs/client',
      "import '@coxswain/session';",
      'layer client may not import @coxswain/session (layer session)',
    ],
    [
      'from the command line to the testing kit',
      'libs/cli',
      "import '@coxswain/testing';",
      'layer cli may not import @coxswain/testing (layer testing)',
    ],
    [
      'from adapter to adapter',
      'libs/adapters/nats',
      "import '@coxswain/adapter-memory';",
      'layer adapter may not import @coxswain/adapter-memory (layer adapter)',
    ],
    [
      'from adapter to client',
      'libs/adapters/hooks',
      "import '@coxswain/client';",
      'layer adapter may not import @coxswain/client (layer client)',
    ],
    [
      'from adapter to session',
      'libs/adapters/memory',
      "import '@coxswain/session';",
      'layer adapter may not import @coxswain/session (layer session)',
    ],
    [
      'from service to cli',
      'services/sessions',
      "import '@coxswain/cli';",
      'layer service may not import @coxswain/cli (layer cli)',
    ],
    [
      'relative, into another project',
      'libs/session',
      "import '../../turn/src/mod.ts';",
      'relative import leaves libs/session/src: ../../turn/src/mod.ts',
    ],
    [
      'relative, through a re-export',
      'libs/adapters/mcp',
      "export { x } from '../../memory/src/mod.ts';",
      'relative import leaves libs/adapters/mcp/src: ../../memory/src/mod.ts',
    ],
    [
      'relative, as a URL',
      'libs/client',
      "new URL('../../cli/package.json', import.meta.url);",
      'relative import leaves libs/client/src: ../../cli/package.json',
    ],
    [
      'relative, as a reference',
      'libs/turn',
      '/// <reference path="../../session/src/mod.ts" />',
      'relative import leaves libs/turn/src: ../../session/src/mod.ts',
    ],
    [
      'relative, into the tests',
      'libs/session',
      "import '../test/given.ts';",
      'relative import leaves libs/session/src: ../test/given.ts',
    ],
    ['of a vendor, in turn', 'libs/turn', "import { z } from 'zod';", 'layer turn may not import zod'],
    ['of a vendor, in protocol', 'libs/protocol', "import 'yaml';", 'layer protocol may not import yaml'],
    ['of a vendor, in ports', 'libs/ports', "import 'zod';", 'layer ports may not import zod'],
    ['of a vendor, in session', 'libs/session', "import 'xstate';", 'layer session may not import xstate'],
    [
      'of a vendor, in another room',
      'services/sessions',
      "import '@nats-io/jetstream';",
      '@nats-io/jetstream belongs in @coxswain/bus or @coxswain/adapter-nats or @coxswain/client, not in @coxswain/sessions',
    ],
    [
      'that is not declared',
      'libs/adapters/tools',
      "import 'yaml';",
      'yaml is not among the dependencies of @coxswain/adapter-tools',
    ],
    ["of Node's, in turn", 'libs/turn', "import 'node:crypto';", "layer turn may not import Node's node:crypto"],
    [
      "of Node's, without the prefix",
      'libs/protocol',
      "import fs from 'fs';",
      "layer protocol may not import Node's fs",
    ],
    [
      "of Node's, at run time",
      'libs/ports',
      "process.getBuiltinModule('node:fs');",
      "layer ports may not import Node's node:fs",
    ],
    [
      'past the exports of a package',
      'libs/session',
      "import '@coxswain/turn/src/mod.ts';",
      '@coxswain/turn/src/mod.ts is not an export of @coxswain/turn',
    ],
    [
      'through require',
      'libs/session',
      "require('@coxswain/cli');",
      'layer session may not import @coxswain/cli (layer cli)',
    ],
    [
      'that is computed',
      'libs/session',
      'export const load = (path: string) => import(path);',
      'layer session may not import a computed path',
    ],
    ['of a timer, in protocol', 'libs/protocol', 'setTimeout(String, 1);', 'layer protocol may not use setTimeout'],
    ['of the clock, in turn', 'libs/turn', 'export const at = Date.now();', 'layer turn may not use Date.now'],
    ['that is mapped', 'libs/session', "import '#turn';", 'subpath import hides its target: #turn'],
  ];

  test.each(plants.map((plant, index) => [...plant, index] as const))('%s', (_name, folder, _code, rule, index) => {
    const file = fileOf(index, folder);
    expect(caught.filter((violation) => violation.file === file)).toEqual([{ file, line: 2, rule }]);
  });

  test('a dependency that points upwards is caught before anything imports it', () => {
    const file = 'libs/turn/package.json';
    const before = readFileSync(join(copy, file), 'utf8');
    writeFileSync(join(copy, file), before.replace('"dependencies": {', '"dependencies": {\n    "pino": "10.4.0",'));
    try {
      expect(findViolations(copy, projects)).toContainEqual(
        expect.objectContaining({ file, rule: 'layer turn may not import pino' }),
      );
    } finally {
      writeFileSync(join(copy, file), before);
    }
  });

  test('a project without a known layer is caught', () => {
    const untagged = projects.map((project) => (project.root === 'libs/ports' ? { ...project, layer: null } : project));
    expect(findViolations(copy, untagged)).toContainEqual(
      expect.objectContaining({ file: 'libs/ports/package.json', rule: expect.stringContaining('exactly one tag') }),
    );
  });

  test('in the turn machine, an import of a dispatch table by a slice is caught, and a cycle of imports', () => {
    const slices = join(copy, 'libs/turn/src/slices');
    mkdirSync(slices);
    writeFileSync(join(slices, 'one.ts'), "import '../core/next.ts';\nimport type { Two } from './two.ts';\n");
    writeFileSync(join(slices, 'two.ts'), "import './one.ts';\n");
    expect(findViolations(copy, projects)).toEqual([
      { file: 'libs/turn/src/slices/one.ts', line: 1, rule: 'a slice may not import libs/turn/src/core/next.ts' },
      {
        file: 'libs/turn/src/slices/two.ts',
        line: 1,
        rule: expect.stringMatching(/^import cycle: .*one\.ts → .*two\.ts → .*one\.ts$/),
      },
    ]);
    rmSync(slices, { recursive: true });
  });

  test('in a project with rooms, an import past the mod.ts of a room is caught: of a test, and of another room', () => {
    const write = (path: string, text: string) => {
      mkdirSync(dirname(join(copy, 'libs/cli', path)), { recursive: true });
      writeFileSync(join(copy, 'libs/cli', path), text);
    };
    write('src/line/mod.ts', "export {} from './flags.ts';\n");
    write('src/line/flags.ts', 'export {};\n');
    write(
      'src/run/decide.ts',
      "import '../line/mod.ts';\nimport '../line/flags.ts';\nvoid import('../line/flags.ts');\n",
    );
    write('test/planted.test.ts', "import '../src/line/mod.ts';\nvoid import('../src/run/decide.ts');\n");
    expect(findViolations(copy, projects)).toEqual([
      {
        file: 'libs/cli/test/planted.test.ts',
        line: 2,
        rule: 'a test may import only a mod.ts, not libs/cli/src/run/decide.ts',
      },
      {
        file: 'libs/cli/src/run/decide.ts',
        line: 2,
        rule: 'another room may import only libs/cli/src/line/mod.ts, not libs/cli/src/line/flags.ts',
      },
    ]);
    for (const folder of ['src/line', 'src/run', 'test']) rmSync(join(copy, 'libs/cli', folder), { recursive: true });
  });

  test('source outside every project is caught', () => {
    const file = 'libs/stray/src/planted.ts';
    mkdirSync(join(copy, dirname(file)), { recursive: true });
    writeFileSync(join(copy, file), 'export {};\n');
    expect(findViolations(copy, projects)).toContainEqual({ file, line: 1, rule: 'source outside every project' });
    rmSync(join(copy, 'libs/stray'), { recursive: true });
  });
});

// CI runs the command in a fresh clone: it checks the source of the workspace.
test('the check of a commit holds the boundaries', () => {
  const { scripts } = JSON.parse(readFileSync(join(repository, 'package.json'), 'utf8'));
  expect(scripts.check).toContain('npm run check:boundaries');
});
