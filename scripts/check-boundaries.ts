/**
 * Checks the layers of docs/adr/enforce-layers-by-a-check.md: a layer imports only the layers listed for it, and each
 * restricted vendor only the projects listed for it. Projects and their `layer:` tags come from the nx project graph,
 * imports from the TypeScript syntax tree. Prints `file:line: rule` for every violation. Exits with 1 if there is one.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join, relative, resolve, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { importsOf, refusedGlobalsOf } from './boundaries/imports-of.ts';
import {
  type Arrow,
  arrowOf,
  brokenRooms,
  brokenSlices,
  brokenTests,
  cycles,
  PROJECTS_WITH_ROOMS,
  type Violation,
} from './boundaries/within-project.ts';

export type { Violation } from './boundaries/within-project.ts';

/** The imports that the source of a layer may have. With `vendors: null`, each project's own dependencies decide. */
export interface LayerRule {
  readonly layers: readonly string[];
  readonly vendors: readonly string[] | null;
  readonly nodeBuiltins: boolean;
  /**
   * Whether `import(expression)` is allowed. It hides its target from this check, so only layers that load files of
   * users have it.
   */
  readonly computedImports: boolean;
}

const pure = { nodeBuiltins: false, computedImports: false };

/** Layers of pure functions. They use no timers, clocks, randomness or I/O of the platform. */
const WITHOUT_GLOBALS: ReadonlySet<string> = new Set(['protocol', 'turn', 'ports']);

/** The rule of each layer. */
export const LAYERS: Readonly<Record<string, LayerRule>> = {
  protocol: { ...pure, layers: [], vendors: ['ajv', 'zod', 're2js'] },
  turn: { ...pure, layers: ['protocol'], vendors: ['xstate'] },
  ports: { ...pure, layers: ['protocol'], vendors: [] },
  bus: { layers: ['protocol'], vendors: ['@nats-io/*'], nodeBuiltins: true, computedImports: false },
  // The safe file reader of `ports` reads modules of users.
  handlers: {
    layers: ['protocol', 'ports'],
    vendors: ['esbuild'],
    nodeBuiltins: true,
    computedImports: true,
  },
  session: {
    layers: ['protocol', 'turn', 'ports', 'handlers'],
    vendors: ['zod'],
    nodeBuiltins: true,
    computedImports: false,
  },
  adapter: {
    layers: ['protocol', 'ports', 'bus', 'handlers'],
    vendors: null,
    nodeBuiltins: true,
    computedImports: true,
  },
  // Of `ports`, the client uses the discovery of a bus; its entry for browsers does not.
  client: {
    layers: ['protocol', 'ports', 'bus', 'handlers'],
    vendors: ['@nats-io/*'],
    nodeBuiltins: true,
    computedImports: false,
  },
  // Code of a web page: no Node built-ins. Its vendors are bundled, so a gateway that serves the page does not install
  // them.
  console: { ...pure, layers: ['protocol', 'client'], vendors: ['preact', 'marked', 'elkjs'] },
  service: {
    layers: ['protocol', 'ports', 'handlers', 'session', 'adapter', 'client'],
    vendors: null,
    nodeBuiltins: true,
    computedImports: true,
  },
  // Only tests depend on this layer. Like the services, it loads the modules of users.
  testing: {
    layers: ['protocol', 'ports', 'handlers', 'session', 'adapter', 'client', 'service'],
    vendors: [],
    nodeBuiltins: true,
    computedImports: false,
  },
  cli: {
    layers: ['protocol', 'ports', 'handlers', 'session', 'adapter', 'client', 'service'],
    vendors: null,
    nodeBuiltins: true,
    computedImports: true,
  },
};

/**
 * Files and folders of pure layers that may import Node built-ins: code that adapters and the client share, as they may
 * not import each other.
 */
const NODE_FILES: readonly string[] = ['libs/ports/src/regular-file.ts', 'libs/ports/src/discovery/'];

/**
 * The projects that may depend on each restricted vendor. Any project may depend on a vendor that is not listed here,
 * if its layer allows it.
 */
const VENDOR_ROOMS: Readonly<Record<string, readonly string[]>> = {
  '@agentclientprotocol/*': ['@coxswain/acp'],
  '@ai-sdk/*': ['@coxswain/adapter-models'],
  '@modelcontextprotocol/*': ['@coxswain/adapter-mcp', '@coxswain/mcp'],
  '@nats-io/*': ['@coxswain/bus', '@coxswain/adapter-nats', '@coxswain/client'],
  xstate: ['@coxswain/turn'],
};

/** A workspace package, as in the nx project graph. */
export interface Project {
  readonly name: string;
  /** Relative to the workspace root, with forward slashes. */
  readonly root: string;
  readonly layer: string | null;
}

interface Manifest {
  readonly exports?: Readonly<Record<string, unknown>>;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
}

/**
 * Reads the projects of the workspace from nx, without its daemon and with an empty cache.
 * @throws Error if nx fails.
 */
export function loadProjects(workspaceRoot: string): Project[] {
  const scratch = mkdtempSync(join(tmpdir(), 'boundaries-'));
  try {
    const printed = execFileSync(join(workspaceRoot, 'node_modules/.bin/nx'), ['graph', '--print'], {
      cwd: workspaceRoot,
      encoding: 'utf8',
      maxBuffer: 64 * 1024 * 1024,
      stdio: ['ignore', 'pipe', 'inherit'],
      env: {
        ...process.env,
        NX_DAEMON: 'false',
        NX_CACHE_DIRECTORY: join(scratch, 'cache'),
        NX_WORKSPACE_DATA_DIRECTORY: join(scratch, 'data'),
      },
    });
    const { graph } = JSON.parse(printed) as {
      graph: { nodes: Record<string, { name: string; data: { root: string; tags?: string[] } }> };
    };
    return Object.values(graph.nodes)
      .map(({ name, data }) => {
        const layers = (data.tags ?? []).filter((tag) => tag.startsWith('layer:'));
        return {
          name,
          root: data.root,
          layer: layers.length === 1 ? (layers[0]?.slice('layer:'.length) ?? null) : null,
        };
      })
      .sort((a, b) => a.root.localeCompare(b.root));
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

/** Finds every violation in the given workspace. */
export function findViolations(workspaceRoot: string, projects: readonly Project[]): Violation[] {
  const homeless = sourceFiles(workspaceRoot, ['libs', 'services'])
    .filter((file) => !projects.some((project) => isInside(file, project.root)))
    .map((file) => ({ file, line: 1, rule: 'source outside every project' }));
  return [...homeless, ...projects.flatMap((project) => violationsOfProject(workspaceRoot, projects, project))];
}

function violationsOfProject(workspaceRoot: string, projects: readonly Project[], project: Project): Violation[] {
  const manifestFile = `${project.root}/package.json`;
  const rule = project.layer === null ? undefined : LAYERS[project.layer];
  if (rule === undefined) {
    const known = Object.keys(LAYERS).join('|');
    return [{ file: manifestFile, line: 1, rule: `needs exactly one tag layer:${known}` }];
  }

  const manifestText = readFileSync(join(workspaceRoot, manifestFile), 'utf8');
  const dependencies = dependenciesOf(JSON.parse(manifestText), project.layer === 'console');
  const manifestLines = manifestText.split('\n');
  const found: Violation[] = [];
  // A dependency counts as an import, also if no file imports it yet.
  for (const dependency of dependencies) {
    const broken = brokenPackageRule(projects, project, rule, dependency);
    const line = manifestLines.findIndex((text) => text.includes(`"${dependency}":`)) + 1;
    if (broken !== null) found.push({ file: manifestFile, line, rule: broken });
  }
  const arrows: Arrow[] = [];
  for (const file of sourceFiles(workspaceRoot, [`${project.root}/src`])) {
    if (project.layer !== null && WITHOUT_GLOBALS.has(project.layer) && !mayUseNode(file))
      for (const { name, line } of refusedGlobalsOf(join(workspaceRoot, file)))
        found.push({ file, line, rule: `layer ${project.layer} may not use ${name}` });
    for (const { specifier, line, isDynamic } of importsOf(join(workspaceRoot, file))) {
      const broken = brokenImportRule(workspaceRoot, projects, project, rule, dependencies, file, specifier);
      if (broken !== null) found.push({ file, line, rule: broken });
      if (specifier?.startsWith('.')) arrows.push(arrowOf(file, specifier, line, isDynamic));
    }
  }
  if (project.layer === 'turn') found.push(...brokenSlices(project.root, arrows), ...cycles(arrows));
  if (PROJECTS_WITH_ROOMS.has(project.root)) {
    const tests = filesIn(workspaceRoot, [`${project.root}/test`]).flatMap((file) =>
      importsOf(join(workspaceRoot, file)).flatMap(({ specifier, line, isDynamic }) =>
        specifier?.startsWith('.') ? [arrowOf(file, specifier, line, isDynamic)] : [],
      ),
    );
    found.push(...brokenTests(project.root, tests), ...brokenRooms(workspaceRoot, project.root, arrows));
  }
  return found;
}

function brokenImportRule(
  workspaceRoot: string,
  projects: readonly Project[],
  project: Project,
  rule: LayerRule,
  dependencies: readonly string[],
  file: string,
  specifier: string | null,
): string | null {
  if (specifier === null) {
    return rule.computedImports ? null : `layer ${project.layer} may not import a computed path`;
  }
  if (specifier.startsWith('.') || specifier.startsWith('/') || specifier.startsWith('file:')) {
    const from = dirname(join(workspaceRoot, file));
    const target = specifier.startsWith('file:') ? fileURLToPath(specifier) : resolve(from, specifier);
    const home = join(workspaceRoot, project.root);
    return isInside(target, join(home, 'src')) || target === join(home, 'package.json')
      ? null
      : `relative import leaves ${project.root}/src: ${specifier}`;
  }
  if (specifier.startsWith('#')) return `subpath import hides its target: ${specifier}`;
  if (isBuiltin(specifier)) {
    return rule.nodeBuiltins || mayUseNode(file) ? null : `layer ${project.layer} may not import Node's ${specifier}`;
  }

  const packageName = packageNameOf(specifier);
  const broken = brokenPackageRule(projects, project, rule, packageName);
  if (broken !== null) return broken;
  if (!dependencies.includes(packageName)) return `${packageName} is not among the dependencies of ${project.name}`;
  const target = projects.find(({ name }) => name === packageName);
  if (target !== undefined) {
    const manifest: Manifest = JSON.parse(readFileSync(join(workspaceRoot, target.root, 'package.json'), 'utf8'));
    const subpath = `.${specifier.slice(packageName.length)}`;
    if (manifest.exports?.[subpath] === undefined) return `${specifier} is not an export of ${packageName}`;
  }
  return null;
}

function brokenPackageRule(
  projects: readonly Project[],
  project: Project,
  rule: LayerRule,
  packageName: string,
): string | null {
  const target = projects.find(({ name }) => name === packageName);
  if (target !== undefined) {
    const allowed = target.layer !== null && rule.layers.includes(target.layer);
    return allowed ? null : `layer ${project.layer} may not import ${packageName} (layer ${target.layer})`;
  }
  if (rule.vendors !== null && !rule.vendors.some((pattern) => matches(pattern, packageName))) {
    return `layer ${project.layer} may not import ${packageName}`;
  }
  for (const [pattern, rooms] of Object.entries(VENDOR_ROOMS)) {
    if (matches(pattern, packageName) && !rooms.includes(project.name)) {
      return `${packageName} belongs in ${rooms.join(' or ')}, not in ${project.name}`;
    }
  }
  return null;
}

function mayUseNode(file: string): boolean {
  return NODE_FILES.some((one) => file === one || (one.endsWith('/') && file.startsWith(one)));
}

function dependenciesOf(manifest: Manifest, isBundled: boolean): string[] {
  return Object.keys({
    ...(isBundled ? manifest.devDependencies : {}),
    ...manifest.dependencies,
    ...manifest.optionalDependencies,
    ...manifest.peerDependencies,
  });
}

function packageNameOf(specifier: string): string {
  return specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/');
}

function matches(pattern: string, packageName: string): boolean {
  return pattern.endsWith('/*') ? packageName.startsWith(pattern.slice(0, -1)) : pattern === packageName;
}

function isInside(path: string, folder: string): boolean {
  const steps = relative(folder, path);
  return steps === '' || (steps !== '..' && !steps.startsWith(`..${sep}`));
}

/** Source files in `src` folders, as paths relative to the workspace root. */
function sourceFiles(workspaceRoot: string, folders: readonly string[]): string[] {
  return filesIn(workspaceRoot, folders).filter((path) => path.split('/').includes('src'));
}

/** TypeScript and JavaScript files in folders, as paths relative to the workspace root. */
function filesIn(workspaceRoot: string, folders: readonly string[]): string[] {
  return folders
    .map((folder) => join(workspaceRoot, folder))
    .filter((folder) => existsSync(folder))
    .flatMap(filesBelow)
    .map((path) => relative(workspaceRoot, path).split(sep).join('/'))
    .filter((path) => /\.[cm]?[jt]sx?$/.test(path))
    .sort();
}

function filesBelow(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (!entry.isDirectory()) return [path];
    return entry.name === 'node_modules' || entry.name === 'dist' ? [] : filesBelow(path);
  });
}

function main(): void {
  const workspaceRoot = resolve(fileURLToPath(import.meta.url), '../..');
  const projects = loadProjects(workspaceRoot);
  if (projects.length === 0) throw new Error('nx found no project in the workspace');
  const violations = findViolations(workspaceRoot, projects);
  for (const { file, line, rule } of violations) console.error(`${file}:${line}: ${rule}`);
  if (violations.length > 0) {
    console.error(`${violations.length} import(s) cross a boundary`);
    process.exitCode = 1;
  } else {
    console.log(`boundaries hold in ${projects.length} projects`);
  }
}

if (process.argv[1] !== undefined && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) main();
