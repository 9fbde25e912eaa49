/** Collects the hooks of a program: definitions, registries and files. */
import type { Hooks, Log } from '@coxswain/ports';
import type { HookDefinitions } from '@coxswain/protocol';
import { combineHooks } from './combine-hooks.ts';
import { createHookRegistry } from './hook-registry.ts';
import { loadHooks } from './load-hooks.ts';

/** The return value of `defineHooks`, a registry, or the path of a module or of a YAML manifest. */
export type HookSource = HookDefinitions | Hooks | string;

/**
 * Combines all hooks of a program into one source.
 * @param name the prefix of generated hook ids. If there are several sources, the number of the source is added.
 * @throws HookModuleError, ManifestError, HookRegistrationError
 */
export async function gatherHooks(
  given: HookSource | readonly HookSource[] | undefined,
  name: string,
  log: Log,
): Promise<Hooks> {
  const list = given === undefined ? [] : isList(given) ? given : [given];
  const named = list.map((one, index) => hooksOf(one, list.length > 1 ? `${name}-${index + 1}` : name));
  return combineHooks(await Promise.all(named), log);
}

async function hooksOf(given: HookSource, name: string): Promise<Hooks> {
  if (typeof given === 'string') return (await loadHooks(given, name)).hooks;
  if ('ask' in given && 'table' in given) return given as Hooks;
  const registry = createHookRegistry({ name });
  registry.registerAll(given as HookDefinitions);
  return registry;
}

function isList(given: HookSource | readonly HookSource[]): given is readonly HookSource[] {
  return Array.isArray(given);
}
