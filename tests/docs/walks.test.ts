/** The walks name files and functions that exist, and the architecture names every room with its real imports. */
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { LAYERS } from '../../scripts/check-boundaries.ts';
import { REPOSITORY } from '../e2e/kit/child.ts';

const read = (path: string): string => readFileSync(join(REPOSITORY, path), 'utf8');

/** Whether a source declares a name, or has the method `Class.method`. */
function declares(source: string, name: string): boolean {
  const [declared, method] = name.split('.');
  const isDeclared = new RegExp(`^(export )?(abstract |async )*(function\\*?|const|class) ${declared}\\b`, 'm').test(
    source,
  );
  return (
    isDeclared && (method === undefined || new RegExp(`^ +(async |get )?${method}(<[^>]*>)?\\(`, 'm').test(source))
  );
}

/** The rows of a walk: number, file, and the function or method. */
function hopsOf(page: string): { readonly no: number; readonly file: string; readonly name: string }[] {
  return [...page.matchAll(/^\| (\d+) \| `([^`]+)` · `([^`]+)` \|/gm)].map(([, no, file, name]) => ({
    no: Number(no),
    file: file as string,
    name: name as string,
  }));
}

describe.each(['steer', 'tool-call'])('the walk %s', (walk) => {
  const page = read(`docs/walks/${walk}.md`);
  const hops = hopsOf(page);

  test('names functions that exist', () => {
    const missing = hops.filter(({ file, name }) => !existsSync(join(REPOSITORY, file)) || !declares(read(file), name));
    expect(missing).toEqual([]);
    expect(hops.map(({ no }) => no)).toEqual(hops.map((_, index) => index + 1));
  });

  test('counts its files and hops', () => {
    const files = new Set(hops.map(({ file }) => file)).size;
    expect(page).toContain(`The walk has ${files} files and ${hops.length} hops.`);
  });
});

test('the table of rules names files and functions that exist', () => {
  const rules = [...read('docs/walks/README.md').matchAll(/^\| ([^|]+) \| (.*`.*) \|$/gm)];
  expect(rules.length).toBeGreaterThan(80);
  const missing = rules.flatMap(([, rule, cell]) =>
    (cell as string).split('; ').flatMap((part) => {
      const [path, ...names] = [...part.matchAll(/`([^`]+)`/g)].map(([, name]) => name as string);
      if (path === undefined) return [];
      if (!path.includes('/') || !existsSync(join(REPOSITORY, path))) return [`${rule}: ${path}`];
      return names.filter((name) => !declares(read(path), name)).map((name) => `${rule}: ${path} ${name}`);
    }),
  );
  expect(missing).toEqual([]);
});

/** The rows of a table with the columns: room, contents, may import, start reading in. */
function roomsOf(section: string): { readonly room: string; readonly imports: string[]; readonly start: string }[] {
  return [...section.matchAll(/^\| `([^`]+)` \| [^|]* \| ([^|]*) \| `([^`]+)` \|$/gm)].map(
    ([, room, imports, start]) => ({
      room: room as string,
      imports: [...(imports as string).matchAll(/`([^`]+)`/g)].map(([, name]) => name as string),
      start: start as string,
    }),
  );
}

const sections = new Map(
  read('docs/architecture.md')
    .split(/^##+ /m)
    .map((section) => [section.split('\n', 1)[0], section]),
);

const foldersOf = (path: string): string[] =>
  readdirSync(join(REPOSITORY, path)).filter((name) => statSync(join(REPOSITORY, path, name)).isDirectory());

test('the architecture names every package, the layers that it may import, and a file to start in', () => {
  const packages = ['libs', 'libs/adapters', 'services']
    .flatMap((folder) => foldersOf(folder).map((name) => `${folder}/${name}`))
    .filter((path) => existsSync(join(REPOSITORY, path, 'package.json')));
  const rows = roomsOf(sections.get('Packages') ?? '');
  expect(rows.map(({ room }) => room).sort()).toEqual(packages.sort());
  for (const { room, imports, start } of rows) {
    const { nx } = JSON.parse(read(`${room}/package.json`)) as { readonly nx: { readonly tags: readonly string[] } };
    const layer = nx.tags.find((tag) => tag.startsWith('layer:'))?.slice('layer:'.length) ?? '';
    expect({ room, imports }).toEqual({ room, imports: LAYERS[layer]?.layers });
    expect({ start, exists: existsSync(join(REPOSITORY, room, start)) }).toEqual({ start, exists: true });
  }
});

describe.each(['libs/protocol/src', 'libs/turn/src', 'libs/session/src', 'libs/cli/src', 'services/gateway/src'])(
  'the architecture of %s',
  (root) => {
    const rows = roomsOf(sections.get(`Folders of \`${root}\``) ?? '');

    test('names every folder, and a file to start in', () => {
      const folders = foldersOf(root).flatMap((name) =>
        name === 'slices' ? foldersOf(`${root}/slices`).map((slice) => `slices/${slice}`) : [name],
      );
      expect(rows.map(({ room }) => room).sort()).toEqual(folders.sort());
      expect(rows.filter(({ room, start }) => !existsSync(join(REPOSITORY, root, room, start)))).toEqual([]);
    });

    test('names every folder that a folder imports', () => {
      const unnamed = rows.flatMap(({ room, imports }) =>
        importedFolders(root, room)
          .filter((folder) => !imports.includes(folder))
          .map((folder) => `${room} imports ${folder}`),
      );
      expect(unnamed).toEqual([]);
    });
  },
);

/** Top folders of the package that the files of a folder import, except its own. */
function importedFolders(root: string, room: string): string[] {
  const found = new Set<string>();
  const files = readdirSync(join(REPOSITORY, root, room), { recursive: true, encoding: 'utf8' });
  for (const file of files.filter((name) => name.endsWith('.ts'))) {
    for (const [, target] of read(`${root}/${room}/${file}`).matchAll(/from '(\.\.\/[^']+)'/g)) {
      const path = join(room, dirname(file), target as string);
      if (!path.startsWith(`${room}/`) && path.includes('/')) found.add(path.split('/', 1)[0] as string);
    }
  }
  return [...found];
}
