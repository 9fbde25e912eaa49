/** Loads handlers from a file: a module that declares them, or a manifest. */

import { HookModuleError, loadModule } from '@coxswain/handlers/load';
import type { HookDefinitions } from '@coxswain/protocol';
import { createHookRegistry, HookRegistrationError, type HookRegistry } from './hook-registry.ts';
import { loadManifest } from './load-manifest.ts';

/** Loaded handlers, and the files of their modules. */
export interface LoadedHooks {
  readonly hooks: HookRegistry;
  readonly files: readonly string[];
}

/**
 * Loads `policy.ts` with its `export default defineHooks({…})`, or a YAML manifest.
 * @param name the prefix of generated hook ids.
 * @throws HookModuleError, ManifestError
 */
export async function loadHooks(path: string, name: string): Promise<LoadedHooks> {
  if (/\.ya?ml$/i.test(path)) return loadManifest(path, name);
  const { exports, files } = await loadModule(path);
  const definitions = exports.default;
  if (typeof definitions !== 'object' || definitions === null || Array.isArray(definitions))
    throw new HookModuleError(`${path}: it has no handlers: export default defineHooks({ … })`);
  const hooks = createHookRegistry({ name });
  try {
    hooks.registerAll(definitions as HookDefinitions);
  } catch (error) {
    if (error instanceof HookRegistrationError)
      throw new HookModuleError(`${path}: ${error.message}`, { cause: error });
    throw error;
  }
  return { hooks, files };
}
