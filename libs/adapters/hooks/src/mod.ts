/** The hook port: handlers in this process, modules of handlers, and the combination of several sources. */
export { combineHooks } from './combine-hooks.ts';
export { gatherHooks, type HookSource } from './gather-hooks.ts';
export {
  createHookRegistry,
  type HookOptions,
  HookRegistrationError,
  type HookRegistry,
  type HookRegistryOptions,
  type ToolHook,
  type Unregister,
} from './hook-registry.ts';
export { type LoadedHooks, loadHooks } from './load-hooks.ts';
export {
  type DeclaredHook,
  type DeclaredToolEntry,
  inspectManifest,
  type LoadedManifest,
  loadManifest,
  ManifestError,
  type ManifestInspection,
} from './load-manifest.ts';
export { type LoadedTools, loadTools } from './load-tools.ts';
export { type BrokenYaml, type LocatedYaml, readLocatedYaml } from './located-yaml.ts';
