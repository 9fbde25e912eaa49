/** Loads tools from a file: a module that exports them, or a manifest. */

import { exportedTools, HookModuleError, loadModule } from '@coxswain/handlers/load';
import type { Tool } from '@coxswain/protocol';
import { loadManifest } from './load-manifest.ts';

/** Loaded tools, and the files of their modules. */
export interface LoadedTools {
  readonly tools: readonly Tool[];
  readonly files: readonly string[];
}

/**
 * Loads the tools of a module, whose default export is a tool or a list of tools, or of a YAML manifest.
 * @throws HookModuleError, ManifestError
 */
export async function loadTools(path: string): Promise<LoadedTools> {
  if (/\.ya?ml$/i.test(path)) {
    const { tools, files } = await loadManifest(path);
    if (tools.length === 0) throw new HookModuleError(`${path}: it declares no tools`);
    return { tools, files };
  }
  const { exports, files } = await loadModule(path);
  if (typeof exports.default !== 'object' || exports.default === null)
    throw new HookModuleError(`${path}: it has no tool: export default defineTool({ … })`);
  const read = exportedTools(exports.default);
  if ('problem' in read) throw new HookModuleError(`${path}: ${read.problem}`);
  return { tools: read.tools, files };
}
