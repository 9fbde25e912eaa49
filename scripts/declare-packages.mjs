// Writes the type declarations of the packages that projects import, for editors and for `tsc`. `cox init` and `npm run
// types` call it. It is not a part of bundling: it takes a compiler some seconds, which every `npm ci` would pay.
import { execFileSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { BUNDLED_PACKAGES } from './bundled-packages.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
/** The declarations are next to the bundles, in the folder structure of the sources. */
const FOLDER = join(root, 'libs/cli/dist/packages');
const DECLARED = join(FOLDER, 'declared');
/** A marker, written last. If a source is newer than it, the declarations are made again. */
const DONE = join(DECLARED, 'done');
const ROOMS = ['libs', 'services'];
const BASE = join(root, 'tsconfig.base.json');
const COMPILER = join(root, 'node_modules/typescript-7/bin/tsc');
const RESOLUTION = { customConditions: ['coxswain-source'], typeRoots: [join(root, 'node_modules/@types')] };

/**
 * Writes the declarations if they are missing or older than a source.
 * @param begun called before the first declaration is made.
 * @returns false if TypeScript is not installed; nothing is written then.
 */
export async function declarePackages(begun) {
  if (isFresh()) return true;
  const ts = await import('typescript').then(
    (loaded) => loaded.default,
    (error) => {
      if (error.code === 'ERR_MODULE_NOT_FOUND') return null;
      throw error;
    },
  );
  if (ts === null) return false;
  begun();
  const names = bundledNames();
  const modules = names.flatMap((name) => exportedBy(name).map((module) => ({ name, module })));
  const entries = modules.map(({ name, module }) => join(root, sourceOf(name), `src/${module}.ts`));
  for (const [source, text] of declarations(ts, entries)) whole(declaredAt(source), text);
  for (const { name, module } of modules)
    whole(join(FOLDER, name, `${module}.d.mts`), `export * from '../declared/${sourceOf(name)}/src/${module}.ts';\n`);
  whole(DONE, '');
  return true;
}

/** The folders of bundled packages. */
function bundledNames() {
  return readdirSync(FOLDER).filter((name) => existsSync(join(FOLDER, name, 'package.json')));
}

function sourceOf(name) {
  return BUNDLED_PACKAGES[name].source;
}

/** The modules that a bundled package exports, by its manifest. */
function exportedBy(name) {
  const { exports } = JSON.parse(readFileSync(join(FOLDER, name, 'package.json'), 'utf8'));
  return Object.values(exports).map(({ types }) => basename(types, '.d.mts'));
}

function isFresh() {
  if (!existsSync(DONE)) return false;
  const isDeclared = (name) => exportedBy(name).every((module) => existsSync(join(FOLDER, name, `${module}.d.mts`)));
  // A bundle that is newer than the declarations may export another module.
  if (!bundledNames().every(isDeclared)) return false;
  const made = statSync(DONE).mtimeMs;
  return ROOMS.every((room) => newest(join(root, room)) <= made);
}

/** The declarations of these files and of all own files that they reference, by source path. */
export function declarations(ts, entries) {
  const { options } = ts.convertCompilerOptionsFromJson(
    { ...ts.readConfigFile(BASE, ts.sys.readFile).config.compilerOptions, ...RESOLUTION },
    root,
  );
  const host = ts.createCompilerHost(options);
  // It finds the file that declares a name. It infers no types: that takes it ten times as long as the native compiler.
  const program = ts.createProgram(entries, options, host);
  const own = program
    .getSourceFiles()
    .filter(({ fileName, isDeclarationFile }) => isOwn(fileName) && !isDeclarationFile);
  const texts = emitted(own.map(({ fileName }) => fileName));
  const made = new Map();
  for (const waiting = [...entries]; waiting.length > 0; ) {
    const source = waiting.pop();
    if (made.has(source)) continue;
    const text = texts.get(source);
    if (text === undefined) throw new Error(`no types could be declared for ${relative(root, source)}`);
    const ownSource = (name) => {
      const { resolvedModule } = ts.resolveModuleName(
        name,
        source,
        options,
        host,
        undefined,
        undefined,
        ts.ModuleKind.ESNext,
      );
      const target = resolvedModule?.resolvedFileName;
      return target === undefined || !isOwn(target) || target.endsWith('.d.ts') ? null : target;
    };
    const pathTo = (target) => {
      waiting.push(target);
      const path = relative(dirname(source), target).split(sep).join('/');
      return path.startsWith('.') ? path : `./${path}`;
    };
    made.set(
      source,
      fromDeclaringFiles(
        ts,
        text,
        (name, imported) => {
          const target = ownSource(name);
          return target === null ? null : declaringFile(ts, program, target, imported);
        },
        pathTo,
      ).replace(/((?:\bfrom |\bimport\()["'])([^"']+)(["'])/g, (said, before, name, after) => {
        const target = ownSource(name);
        return target === null ? said : `${before}${pathTo(target)}${after}`;
      }),
    );
  }
  return made;
}

/**
 * What the native compiler declares for these files, by source path. They include all own files that they import: a compiler
 * emits nothing for files that it finds as part of a package.
 */
function emitted(files) {
  const folder = mkdtempSync(join(tmpdir(), 'coxswain-declarations-'));
  try {
    const project = join(folder, 'tsconfig.json');
    const outDir = join(folder, 'out');
    const compilerOptions = {
      ...RESOLUTION,
      rootDir: root,
      outDir,
      declaration: true,
      emitDeclarationOnly: true,
      stripInternal: true,
      // `npm run typecheck` has checked the types already.
      noCheck: true,
    };
    writeFileSync(project, JSON.stringify({ extends: BASE, compilerOptions, files }));
    execFileSync(process.execPath, [COMPILER, '-p', project, '--singleThreaded'], { cwd: root });
    const paths = readdirSync(outDir, { recursive: true }).filter((path) => path.endsWith('.d.ts'));
    return new Map(
      paths.map((path) => [join(root, path.replace(/\.d\.ts$/, '.ts')), readFileSync(join(outDir, path), 'utf8')]),
    );
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/**
 * Replaces each imported or re-exported name's module by the file that declares the name. The main module of a package
 * references all of its files. A user's program would read all of them and the declarations of their libraries, which
 * do not compile under every strict option.
 * @param declaring returns the file that declares a name of a module, and the name there; null to leave the name
 *   unchanged.
 */
function fromDeclaringFiles(ts, text, declaring, pathTo) {
  const file = ts.createSourceFile('declared.d.ts', text, ts.ScriptTarget.ESNext);
  let written = '';
  let end = 0;
  for (const statement of file.statements) {
    const names = ts.isImportDeclaration(statement)
      ? statement.importClause?.namedBindings
      : ts.isExportDeclaration(statement) && statement.moduleSpecifier
        ? statement.exportClause
        : undefined;
    if (!names || !(ts.isNamedImports(names) || ts.isNamedExports(names))) continue;
    const isImport = ts.isImportDeclaration(statement);
    const isType = isImport ? statement.importClause.isTypeOnly : statement.isTypeOnly;
    const from = names.elements.map((element) => {
      const name = (element.propertyName ?? element.name).text;
      const found = declaring(statement.moduleSpecifier.text, name);
      const local = element.name.text;
      const type = isType || element.isTypeOnly ? 'type ' : '';
      return (
        found && { file: found.file, text: `${type}${found.name === local ? local : `${found.name} as ${local}`}` }
      );
    });
    if ((isImport && statement.importClause.name) || from.length === 0 || from.includes(null)) continue;
    const word = isImport ? 'import' : 'export';
    const lines = [...new Set(from.map((one) => one.file))].map((declared) => {
      const ones = from.filter((one) => one.file === declared).map((one) => one.text);
      return `${word} { ${ones.join(', ')} } from '${pathTo(declared)}';`;
    });
    written += text.slice(end, statement.getStart(file)) + lines.join('\n');
    end = statement.end;
  }
  return written + text.slice(end);
}

/**
 * The file that declares a name which a module exports, and its name there. Null if no own file exports it under that
 * name.
 */
function declaringFile(ts, program, module, exported) {
  const checker = program.getTypeChecker();
  const file = program.getSourceFile(module);
  const symbol = file && checker.getSymbolAtLocation(file);
  const member = symbol && checker.tryGetMemberInModuleExports(exported, symbol);
  if (!member) return null;
  const declared = member.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(member) : member;
  const at = declared.declarations?.[0]?.getSourceFile();
  if (!at || !isOwn(at.fileName) || at.isDeclarationFile) return null;
  const home = checker.getSymbolAtLocation(at);
  const isExported = home && checker.tryGetMemberInModuleExports(declared.name, home) === declared;
  return isExported ? { file: at.fileName, name: declared.name } : null;
}

function isOwn(path) {
  return ROOMS.some((room) => path.startsWith(join(root, room) + sep)) && !path.includes('/node_modules/');
}

function declaredAt(source) {
  return join(DECLARED, relative(root, source).replace(/\.ts$/, '.d.ts'));
}

/** The time of the newest change of a source below a folder, in milliseconds since the epoch. */
function newest(folder) {
  let latest = 0;
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) {
      if (!['node_modules', 'dist', 'test'].includes(entry.name)) latest = Math.max(latest, newest(path));
    } else if (/\.ts$|^package\.json$/.test(entry.name)) latest = Math.max(latest, statSync(path).mtimeMs);
  }
  return latest;
}

function whole(path, contents) {
  mkdirSync(dirname(path), { recursive: true });
  const unfinished = `${path}.${process.pid}`;
  writeFileSync(unfinished, contents);
  renameSync(unfinished, path);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const isMade = await declarePackages(() => console.log('declaring the types of the packages'));
  if (!isMade) throw new Error('TypeScript is not installed: run npm ci');
}
