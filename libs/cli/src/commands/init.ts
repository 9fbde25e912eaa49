/** `cox init`. */
import { constants, existsSync, type Stats } from 'node:fs';
import { lstat, readdir, readFile, readlink, stat, writeFile } from 'node:fs/promises';
import { basename, dirname, join, relative, resolve, sep } from 'node:path';
import { pathToFileURL } from 'node:url';
import { makeFolder, systemTrouble } from '@coxswain/ports/discovery';
import { VERSION } from '@coxswain/protocol/version';
import { callerFolder, FolderTrust, filesNeedingTrust, isPublished, packageFolder } from '../folders/mod.ts';
import { CliError, type CommandRun, EXIT, shellQuoted, usageError } from '../line/mod.ts';
import { standardStreams } from '../terminal/mod.ts';

/** Overwrites a file, but does not follow a symbolic link that was created meanwhile. */
const OVER = constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | constants.O_NOFOLLOW;

/** A project's compiler and the types it needs: the versions that check the starter in this repository. */
const COMPILER = { '@types/node': '20.19.43', typescript: '6.0.3' };

/**
 * Writes a new project. It depends on the published packages of this version. With `--link`, it depends on the packages
 * of this checkout. Exits 2 if the folder cannot be used.
 */
export const run: CommandRun = async ({ flags, args, env }) => {
  const from = callerFolder(env);
  const [named = '.'] = args;
  // An unset variable in a script must not fill the current folder.
  if (named.trim() === '')
    throw usageError('cox init was given an empty name; name a folder, or none for the current one');
  const folder = resolve(from, named);
  // Compilers and test runners ignore folders below `node_modules`.
  if (folder.split(sep).includes('node_modules'))
    throw usageError(
      `${folder} is inside node_modules, where compilers and test runners ignore projects; ${OTHER_FOLDER}`,
    );
  await refuseNoFolder(named, folder);
  const force = flags.on('force');
  const link = flags.on('link');
  if (link && isPublished())
    throw usageError('--link needs a checkout of Coxswain, and this cox is an installed package; leave --link out');
  const files = await starterFiles(packageFolder(), basename(folder), link);
  await refuseLinks(folder, [...files.keys()]);
  if (!force) await refuseOverwriting(folder, [...files.keys()]);
  await written(folder, () => makeFolder(folder, 0o777));
  if (link) await declareTypes(packageFolder());
  for (const [path, text] of files) {
    const file = join(folder, path);
    await written(file, async () => {
      await makeFolder(dirname(file), 0o777);
      await writeFile(file, text, { flag: force ? OVER : 'wx' });
    });
  }
  // The user requested these files, so the first run does not ask about them.
  await new FolderTrust(folder, env, false).trust(await filesNeedingTrust(folder));
  const paths = [...files.keys()];
  if (flags.on('json')) standardStreams.out(`${JSON.stringify({ type: 'project', folder, files: paths })}\n`);
  else standardStreams.out(nextSteps(relative(from, folder), paths));
  return EXIT.ok;
};

/** The files of the project, keyed and sorted by their paths in it. */
async function starterFiles(home: string, name: string, link: boolean): Promise<ReadonlyMap<string, string>> {
  const starter = join(home, 'starter');
  const packages = join(home, 'dist/packages');
  const files = new Map<string, string>();
  const found = await readdir(starter, { recursive: true, withFileTypes: true }).catch(() => null);
  const isBuilt = !link || (await readdir(packages).catch(() => null)) !== null;
  if (!found || !isBuilt)
    throw new CliError(
      EXIT.error,
      'usage',
      `this installation of cox lacks a part that projects need: ${found ? packages : starter} is missing. ` +
        (link ? 'Run npm ci in the checkout of Coxswain first' : 'Install Coxswain again'),
    );
  for (const entry of found) {
    if (!entry.isFile()) continue;
    const file = join(entry.parentPath, entry.name);
    const path = relative(starter, file).split(sep).join('/');
    // As `.gitignore`, the file would apply to the starter itself.
    files.set(path === 'gitignore' ? '.gitignore' : path, await readFile(file, 'utf8'));
  }
  files.set('package.json', manifest(name, link ? linksTo(home, packages) : PUBLISHED));
  return new Map([...files].sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** Generates the types of the imported packages for editors and `tsc`, if this checkout does not have them yet. */
async function declareTypes(home: string): Promise<void> {
  const script = join(home, '../../scripts/declare-packages.mjs');
  if (!(await lstat(script).catch(() => null))) return;
  const { declarePackages }: { declarePackages(onStart: () => void): Promise<boolean> } = await import(
    pathToFileURL(script).href
  );
  const note = (text: string) => standardStreams.err(`${text}\n`);
  const done = await declarePackages(() =>
    note('writing the type declarations that projects import, once; this can take half a minute'),
  );
  if (!done) note('the project has no types: TypeScript is not installed in the checkout of Coxswain');
}

/** The dependencies of a project, keyed by package name. */
interface Dependencies {
  readonly dependencies: Readonly<Record<string, string>>;
  readonly devDependencies: Readonly<Record<string, string>>;
}

/** The published packages of exactly this version. */
const PUBLISHED: Dependencies = {
  dependencies: { '@coxswain/client': VERSION, coxswain: VERSION },
  devDependencies: { '@coxswain/testing': VERSION, ...COMPILER },
};

/**
 * Links to this checkout, so that a project follows its changes. A container image of Coxswain has no compiler to link
 * to.
 */
function linksTo(home: string, packages: string): Dependencies {
  const linked = (path: string) => `file:${decodeURI(pathToFileURL(path).pathname)}`;
  const compiler = Object.keys(COMPILER)
    .map((dependency) => [dependency, join(home, '../../node_modules', dependency)] as const)
    .filter(([, path]) => existsSync(path))
    .map(([dependency, path]) => [dependency, linked(path)]);
  return {
    dependencies: {
      '@coxswain/cli': linked(home),
      '@coxswain/client': linked(join(packages, 'client')),
      coxswain: linked(join(packages, 'coxswain')),
    },
    devDependencies: {
      '@coxswain/testing': linked(join(packages, 'testing')),
      ...Object.fromEntries(compiler),
    },
  };
}

function manifest(name: string, dependencies: Dependencies): string {
  const value = {
    name: packageName(name),
    version: '0.1.0',
    private: true,
    type: 'module',
    engines: { node: '>=20.19' },
    scripts: { test: 'node --test', typecheck: 'tsc' },
    ...dependencies,
    // npm 11 warns about install scripts without a decision. The script of esbuild only makes its command start faster.
    allowScripts: { esbuild: false },
  };
  return `${JSON.stringify(value, null, 2)}\n`;
}

/** Converts the name of a folder into a valid package name. */
function packageName(folder: string): string {
  const name = folder
    .normalize('NFKD')
    .replaceAll(/\p{Mark}/gu, '')
    .toLowerCase()
    .replaceAll(/[^a-z0-9-]+/g, '-')
    .replaceAll(/^-+|-+$/g, '')
    .slice(0, 64);
  return name === '' ? 'agents' : name;
}

async function refuseOverwriting(folder: string, paths: readonly string[]): Promise<void> {
  const there: string[] = [];
  for (const path of paths) if (await isThere(join(folder, path))) there.push(path);
  if (there.length === 0) return;
  throw usageError(
    `${folder} has ${there.join(', ')} already; nothing was written. Name another folder, or use --force to overwrite ` +
      (there.length === 1 ? 'it' : 'them'),
  );
}

/** Rejects a target that exists and is not a folder. A named link to a folder is valid. */
async function refuseNoFolder(named: string, folder: string): Promise<void> {
  const there = await entryAt(folder);
  if (!there || there.isDirectory()) return;
  if (!there.isSymbolicLink())
    throw usageError(`${named} is ${there.isFile() ? 'a file' : 'not a folder'}; ${OTHER_FOLDER}`);
  const at = await stat(folder).catch(() => null);
  if (at?.isDirectory()) return;
  const to = await readlink(folder);
  throw usageError(
    `${named} is a link to ${at ? `${to}, which is not a folder` : `nothing: ${to} is missing`}; ${OTHER_FOLDER}`,
  );
}

/** Rejects links below the named folder, so that all files are written inside it. */
async function refuseLinks(folder: string, paths: readonly string[]): Promise<void> {
  const below = new Set(
    paths.flatMap((path) => path.split('/').map((_, index, parts) => parts.slice(0, index + 1).join('/'))),
  );
  for (const path of below) {
    const file = join(folder, path);
    if (!(await entryAt(file))?.isSymbolicLink()) continue;
    throw usageError(
      `${file} is a link to ${await readlink(file)}, and cox init does not write through links; remove it first`,
    );
  }
}

async function isThere(path: string): Promise<boolean> {
  return (await entryAt(path)) !== null;
}

async function entryAt(path: string): Promise<Stats | null> {
  try {
    return await lstat(path);
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '')) return null;
    throw unwritable(path, error);
  }
}

async function written(path: string, write: () => Promise<void>): Promise<void> {
  await write().catch((error: unknown) => {
    throw unwritable(path, error);
  });
}

const OTHER_FOLDER = 'name a folder of your own, or a new folder';

function unwritable(path: string, error: unknown): CliError {
  return usageError(`${path} cannot be written: ${systemTrouble(error)}; ${OTHER_FOLDER}`);
}

function nextSteps(folder: string, paths: readonly string[]): string {
  const lines = [
    `wrote ${paths.length} files${folder === '' ? '' : ` to ${folder}`}: ${paths.join(', ')}`,
    '',
    'Next:',
    ...(folder === '' ? [] : [`  cd ${shellQuoted(folder.replace(/^-/, './-'))}`]),
    '  npm install',
    '  npm test',
    '  npx cox run "What is this?" --persona clerk --model scripted/models/demo.yaml',
  ];
  return `${lines.join('\n')}\n`;
}
