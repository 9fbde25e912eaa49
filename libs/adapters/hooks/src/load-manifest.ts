/** The manifest, `coxswain.yaml`: a file that declares hooks and tools. Errors name the file, line and column. */
import { createHash } from 'node:crypto';
import { realpath } from 'node:fs/promises';
import { dirname, relative, resolve } from 'node:path';
import {
  bundleModule,
  exportedTools,
  type Found,
  HookModuleError,
  importBundle,
  type LoadedModule,
  loadHandler,
  loadTool,
  type ModuleBundle,
  readHandlerName,
  watchedTool,
} from '@coxswain/handlers/load';
import { readRegularFile } from '@coxswain/ports/regular-file';
import { type AnyHandler, BusToolName, type HookRegistrationInput, readStrictly, type Tool } from '@coxswain/protocol';
import * as z from 'zod';
import { createHookRegistry, HookRegistrationError } from './hook-registry.ts';
import type { LoadedHooks } from './load-hooks.ts';
import { readLocatedYaml } from './located-yaml.ts';

/** The manifest is invalid, or has changed since it was trusted. The message begins with `path:line:column`. */
export class ManifestError extends Error {
  override readonly name = 'ManifestError';
  readonly code = 'manifest_invalid';
}

const FILE_MAX_BYTES = 1024 * 1024;

/** The structure of the file. Registration validates the values of a hook. */
const Manifest = z.strictObject({
  hooks: z
    .array(
      z.strictObject({
        event: z.string(),
        handler: z.string().optional(),
        id: z.unknown().optional(),
        pattern: z.unknown().optional(),
        persona: z.unknown().optional(),
        step: z.unknown().optional(),
        kinds: z.unknown().optional(),
        priority: z.unknown().optional(),
        timeout_ms: z.unknown().optional(),
        on_error: z.unknown().optional(),
        deny: z.unknown().optional(),
        max_output: z.unknown().optional(),
        returns: z.unknown().optional(),
      }),
    )
    .default([]),
  tools: z.array(z.strictObject({ handler: z.string() })).default([]),
});

type Path = readonly PropertyKey[];

/** A hook, as the manifest declares it. */
export interface DeclaredHook {
  readonly event: string;
  /** `./policy.ts#name`; undefined for a hook without code. */
  readonly handler: string | undefined;
}

/** A tool or a list of tools, as the manifest declares it. */
export interface DeclaredToolEntry {
  /** `./stock.ts#stockLevel` */
  readonly handler: string;
}

/** Loaded hooks and tools, and the files of their modules. */
export interface LoadedManifest extends LoadedHooks {
  readonly tools: readonly Tool[];
}

/** The code that a manifest would run. None of it has run. */
export interface ManifestInspection {
  readonly hooks: readonly DeclaredHook[];
  readonly tools: readonly DeclaredToolEntry[];
  /** The modules of its handlers, sorted, by their paths relative to the manifest's folder. */
  readonly modules: readonly string[];
  /** The packages that the modules import, sorted. Their code is not part of the digest. */
  readonly packages: readonly string[];
  /** The SHA-256 in hex of the manifest and of all its modules. */
  readonly digest: string;
}

/**
 * Reads a manifest and loads its handlers.
 * @param name the prefix of generated hook ids.
 * @param digest the result of an earlier {@link inspectManifest}. Other content does not run.
 * @throws ManifestError
 */
export async function loadManifest(path: string, name = 'manifest', digest?: string): Promise<LoadedManifest> {
  const { file, text, bundles, found } = await bundleManifest(path);
  if (digest !== undefined && digest !== found.digest)
    throw new ManifestError(`${file}: the manifest or a module of it has changed since it was trusted`);
  const modules = new Map<string, Promise<LoadedModule>>();
  for (const [module, bundle] of bundles) {
    const loading = importBundle(bundle);
    modules.set(module, loading);
    // A failure to load is reported for the handler that refers to the module.
    await loading.catch(() => undefined);
  }
  return readManifest(file, text, name, {
    handler: (spec, folder) => loadHandler(spec, folder, modules),
    tool: (spec, folder) => loadTool(spec, folder, modules),
  });
}

/**
 * Validates a manifest and its modules, without running them.
 * @throws ManifestError
 */
export async function inspectManifest(path: string): Promise<ManifestInspection> {
  return (await bundleManifest(path)).found;
}

interface BundledManifest {
  readonly file: string;
  readonly text: string;
  readonly bundles: ReadonlyMap<string, ModuleBundle>;
  readonly found: ManifestInspection;
}

/** Reads each file once, so that the digest covers exactly the code that runs later. */
async function bundleManifest(path: string): Promise<BundledManifest> {
  const file = resolve(path);
  const text = await textOf(file);
  const bundles = new Map<string, ModuleBundle>();
  const hooks: DeclaredHook[] = [];
  const tools: DeclaredToolEntry[] = [];
  const bundle = async <Member>(handler: string, folder: string, member: Member): Promise<Found<Member>> => {
    const named = readHandlerName(handler, folder);
    if ('problem' in named) return [undefined, named.problem, []];
    try {
      const made = bundles.get(named.file) ?? (await bundleModule(named.file));
      bundles.set(named.file, made);
      return [member, null, made.files];
    } catch (error) {
      if (!(error instanceof HookModuleError)) throw error;
      return [undefined, error.message, []];
    }
  };
  const find: Finder = {
    handler: (spec, folder) => bundle(spec, folder, () => undefined),
    tool: (spec, folder) => bundle(spec, folder, null),
  };
  await readManifest(file, text, 'manifest', find, {
    hook: (hook) => hooks.push(hook),
    tool: (tool) => tools.push(tool),
  });
  const folder = await realpath(dirname(file));
  const digests = new Map<string, string>();
  for (const made of bundles.values())
    for (const [module, sha256] of made.digests) digests.set(relative(folder, module), sha256);
  const modules = [...digests.keys()].sort();
  const hash = createHash('sha256').update(text);
  for (const module of modules) hash.update(`\0${module}\0${digests.get(module)}`);
  const packages = [...new Set([...bundles.values()].flatMap((made) => made.packages))].sort();
  return { file, text, bundles, found: { hooks, tools, modules, packages, digest: hash.digest('hex') } };
}

/** Finds the handlers and tools of a manifest. */
interface Finder {
  handler(spec: string, folder: string): Promise<Found<AnyHandler>>;
  /** Null: the tool exists and is not loaded. */
  tool(spec: string, folder: string): Promise<Found<object | null>>;
}

async function readManifest(
  file: string,
  text: string,
  name: string,
  find: Finder,
  declared?: { hook(hook: DeclaredHook): void; tool(tool: DeclaredToolEntry): void },
): Promise<LoadedManifest> {
  const yaml = await readLocatedYaml(text);
  if (!yaml.ok) throw new ManifestError(`${file}:${yaml.at}: ${yaml.problem}`);
  const refuse = (at: Path, what: string, key?: string): ManifestError =>
    new ManifestError(`${file}:${yaml.at(at, key)}: ${what}`);
  const read = readStrictly(Manifest, yaml.value ?? {});
  if (!read.ok) {
    const [{ path, kind, words }] = read.problems;
    if (kind !== 'unknown_key') throw refuse(path, withPath(path, words));
    throw refuse(path.slice(0, -1), withPath(path, `there is no such key${words}`), String(path.at(-1)));
  }

  const registry = createHookRegistry({ name, source: 'manifest' });
  const files = [file];
  for (const [index, { event, handler, ...written }] of read.data.hooks.entries()) {
    const at = ['hooks', index];
    declared?.hook({ event, handler });
    let found: AnyHandler | undefined;
    if (handler !== undefined) {
      const [module, problem, loaded] = await find.handler(handler, dirname(file));
      if (problem !== null) throw refuse([...at, 'handler'], withPath([...at, 'handler'], problem));
      found = module;
      files.push(...loaded);
    } else if (written.deny === undefined && written.max_output === undefined && written.returns === undefined) {
      throw refuse(at, withPath(at, 'it has no handler'));
    }
    const bare =
      handler === undefined && written.max_output !== undefined && written.returns === undefined
        ? { no_handler: true as const }
        : {};
    try {
      registry.register({ ...(defined(written) as Partial<HookRegistrationInput>), ...bare, point: event }, found);
    } catch (error) {
      if (!(error instanceof HookRegistrationError)) throw error;
      const field = error.field === 'point' ? 'event' : error.field;
      throw refuse([...at, field], withPath(at, error.message.replace(/^point:/, 'event:')));
    }
  }
  const tools: Tool[] = [];
  for (const [index, { handler }] of read.data.tools.entries()) {
    const at = ['tools', index, 'handler'];
    declared?.tool({ handler });
    const [member, problem, loaded] = await find.tool(handler, dirname(file));
    if (problem !== null) throw refuse(at, withPath(at, problem));
    files.push(...loaded);
    if (!member) continue;
    const exported = exportedTools(member);
    if ('problem' in exported) throw refuse(at, withPath(at, exported.problem));
    const twice = exported.tools.find((tool) => tools.some((other) => other.name === tool.name));
    if (twice) throw refuse(at, withPath(at, `two tools are named ${twice.name}`));
    for (const { name } of exported.tools) {
      // The rules for names are those of the bus, so that a tool can move there.
      const named = BusToolName.safeParse(name);
      if (!named.success) throw refuse(at, withPath(at, `the tool ${name}: ${named.error.issues[0]?.message}`));
    }
    tools.push(...exported.tools.map(watchedTool));
  }
  return { hooks: registry, tools, files: [...new Set(files)] };
}

async function textOf(file: string): Promise<string> {
  try {
    return (await readRegularFile(file, FILE_MAX_BYTES)).bytes.toString('utf8');
  } catch (error) {
    throw new ManifestError(`${file}: the file ${(error as Error).message}`, { cause: error });
  }
}

function defined(written: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(written).filter(([, value]) => value !== undefined));
}

function withPath(path: Path, message: string): string {
  const place = path.map((step) => (typeof step === 'number' ? `[${step}]` : `.${String(step)}`)).join('');
  return place === '' ? message : `${place.slice(1)}: ${message}`;
}
