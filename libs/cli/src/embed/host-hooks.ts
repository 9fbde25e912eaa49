/** The hooks of an embedded session host, from definitions, registries and files. */
import { combineHooks, createHookRegistry, loadHooks } from '@coxswain/adapter-hooks';
import type { Hooks, Log } from '@coxswain/ports';
import type { HookDefinitions } from '@coxswain/protocol';
import type { CoxswainOptions, EmbeddedHooks } from './options.ts';

/** Makes one source of them. @throws HookModuleError, ManifestError, HookRegistrationError */
export async function hostHooks(given: CoxswainOptions['hooks'], log: Log): Promise<Hooks> {
  const list = given === undefined ? [] : isList(given) ? given : [given];
  const named = list.map((one, index) => hooksOf(one, list.length > 1 ? `program-${index + 1}` : 'program'));
  return combineHooks(await Promise.all(named), log);
}

async function hooksOf(given: EmbeddedHooks, name: string): Promise<Hooks> {
  if (typeof given === 'string') return (await loadHooks(given, name)).hooks;
  if ('ask' in given && 'table' in given) return given as Hooks;
  const registry = createHookRegistry({ name });
  registry.registerAll(given as HookDefinitions);
  return registry;
}

function isList(given: NonNullable<CoxswainOptions['hooks']>): given is readonly EmbeddedHooks[] {
  return Array.isArray(given);
}
