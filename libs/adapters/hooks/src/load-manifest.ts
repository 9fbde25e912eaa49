/** The manifest, `coxswain.yaml`: hooks that a file declares. Whatever is wrong with it is told by file, line and column. */
import { stat } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { readRegularFile } from '@coxswain/ports/regular-file';
import { type HookRegistrationInput, readStrictly } from '@coxswain/protocol';
import { z } from 'zod';
import { readHandlerName } from './handler-name.ts';
import { HookRegistrationError } from './hook-registration-error.ts';
import { createHookRegistry } from './hook-registry.ts';
import { type FoundHandler, loadHandler } from './load-handler.ts';
import type { LoadedHooks } from './load-hooks.ts';
import type { LoadedModule } from './load-module.ts';
import { readLocatedYaml } from './located-yaml.ts';
import type { AnyHandler } from './run-handler.ts';

/** A manifest that is refused. The message begins with `path:line:column`. */
export class ManifestError extends Error {
  override readonly name = 'ManifestError';
  readonly code = 'manifest_invalid';
}

const FILE_MAX_BYTES = 1024 * 1024;

/** The file as it is written. The values of a hook are checked where they are registered. */
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
});

type Path = readonly PropertyKey[];

/**
 * Reads a manifest and loads its handlers.
 * @param name what ids of hooks begin with where the file gives none.
 * @throws ManifestError
 */
export function loadManifest(path: string, name = 'manifest'): Promise<LoadedHooks> {
  const modules = new Map<string, Promise<LoadedModule>>();
  return readManifest(path, name, (handler, folder) => loadHandler(handler, folder, modules));
}

/**
 * Checks a manifest as {@link loadManifest} does, and runs nothing of it: of handlers it looks only whether their files are there.
 * @returns how many hooks it declares.
 * @throws ManifestError
 */
export async function checkManifest(path: string): Promise<number> {
  const { hooks } = await readManifest(path, 'manifest', async (handler, folder): Promise<FoundHandler> => {
    const named = readHandlerName(handler, folder);
    if ('problem' in named) return [undefined, named.problem, []];
    const there = await stat(named.file).then(
      (found) => found.isFile(),
      () => false,
    );
    return there ? [() => undefined, null, []] : [undefined, `there is no file ${named.file}`, []];
  });
  return hooks.table().length;
}

async function readManifest(
  path: string,
  name: string,
  find: (handler: string, folder: string) => Promise<FoundHandler>,
): Promise<LoadedHooks> {
  const file = resolve(path);
  const yaml = readLocatedYaml(await textOf(file));
  if (!yaml.ok) throw new ManifestError(`${file}:${yaml.at}: ${yaml.problem}`);
  const refuse = (at: Path, what: string, key?: string): ManifestError =>
    new ManifestError(`${file}:${yaml.at(at, key)}: ${what}`);
  const read = readStrictly(Manifest, yaml.value ?? {});
  if (!read.ok) {
    const [{ path, kind, words }] = read.problems;
    if (kind !== 'unknown_key') throw refuse(path, told(path, words));
    throw refuse(path.slice(0, -1), told(path, `there is no such key${words}`), String(path.at(-1)));
  }

  const registry = createHookRegistry({ name, source: 'manifest' });
  const files = [file];
  for (const [index, { event, handler, ...written }] of read.data.hooks.entries()) {
    const at = ['hooks', index];
    let found: AnyHandler | undefined;
    if (handler !== undefined) {
      const [module, problem, loaded] = await find(handler, dirname(file));
      if (problem !== null) throw refuse([...at, 'handler'], told([...at, 'handler'], problem));
      found = module;
      files.push(...loaded);
    } else if (written.deny === undefined && written.max_output === undefined && written.returns === undefined) {
      throw refuse(at, told(at, 'it has no handler'));
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
      throw refuse([...at, field], told(at, error.message.replace(/^point:/, 'event:')));
    }
  }
  return { hooks: registry, files: [...new Set(files)] };
}

async function textOf(file: string): Promise<string> {
  try {
    return (await readRegularFile(file, FILE_MAX_BYTES)).bytes.toString('utf8');
  } catch (error) {
    throw new ManifestError(`${file}:1:1: the file ${(error as Error).message}`, { cause: error });
  }
}

function defined(written: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(written).filter(([, value]) => value !== undefined));
}

function told(path: Path, message: string): string {
  const place = path.map((step) => (typeof step === 'number' ? `[${step}]` : `.${String(step)}`)).join('');
  return place === '' ? message : `${place.slice(1)}: ${message}`;
}
