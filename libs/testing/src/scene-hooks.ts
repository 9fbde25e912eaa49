/** The hooks of a scene: declared in the test, or loaded from the file that a host or `cox serve hooks` would load. */
import { combineHooks, createHookRegistry, loadHooks } from '@coxswain/adapter-hooks';
import type { Hooks, Log } from '@coxswain/ports';
import type { HookDefinitions } from '@coxswain/protocol';

/** What `defineHooks` returns, a registry of the caller's own, or the path of a module or of a manifest in YAML. */
export type SceneHooks = HookDefinitions | Hooks | string;

/** Makes one source of them all. @throws HookModuleError, ManifestError, HookRegistrationError */
export async function sceneHooks(given: SceneHooks | readonly SceneHooks[] | undefined, log: Log): Promise<Hooks> {
  const list = given === undefined ? [] : isList(given) ? given : [given];
  return combineHooks(
    await Promise.all(list.map((one, index) => hooksOf(one, list.length > 1 ? `test-${index + 1}` : 'test'))),
    log,
  );
}

async function hooksOf(given: SceneHooks, name: string): Promise<Hooks> {
  if (typeof given === 'string') return (await loadHooks(given, name)).hooks;
  if ('ask' in given && 'table' in given) return given as Hooks;
  const registry = createHookRegistry({ name });
  registry.registerAll(given as HookDefinitions);
  return registry;
}

function isList(given: SceneHooks | readonly SceneHooks[]): given is readonly SceneHooks[] {
  return Array.isArray(given);
}
