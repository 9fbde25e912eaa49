/** Handlers that a file names by module and function. */
import { readHandlerName } from './handler-name.ts';
import { type LoadedModule, loadModule } from './load-module.ts';
import type { AnyHandler } from './run-handler.ts';

/** A handler and the files that it came from, or what is wrong in one sentence. */
export type FoundHandler =
  | readonly [handler: AnyHandler, problem: null, files: readonly string[]]
  | readonly [handler: undefined, problem: string, files: readonly string[]];

/**
 * Loads `./policy.js#rejectSecrets`: the function of that name, or the module's default where none is named. Never rejects.
 * @param folder where relative paths begin.
 * @param modules those that were loaded before, and are not loaded twice.
 */
export async function loadHandler(
  spec: string,
  folder: string,
  modules: Map<string, Promise<LoadedModule>>,
): Promise<FoundHandler> {
  const failed = (problem: string): FoundHandler => [undefined, problem, []];
  const named = readHandlerName(spec, folder);
  if ('problem' in named) return failed(named.problem);
  const { file, name } = named;
  const loading = modules.get(file) ?? loadModule(file);
  modules.set(file, loading);
  try {
    const { exports, files } = await loading;
    const members = { ...membersOf(exports.default), ...exports };
    const found = Object.hasOwn(members, name) ? members[name] : undefined;
    if (typeof found === 'function') return [found as AnyHandler, null, files];
    const functions = Object.keys(members).filter((key) => typeof members[key] === 'function');
    const has = functions.length > 0 ? `it exports ${functions.join(', ')}` : 'it exports no function';
    return failed(`${file} has no function ${name}; ${has}`);
  } catch (error) {
    return failed((error as Error).message);
  }
}

// A CommonJS module exports one object, which is its default here.
function membersOf(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? { ...value } : {};
}
