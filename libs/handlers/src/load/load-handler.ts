/** Loads functions and tools that a file names by module and export. */
import { resolve } from 'node:path';
import type { AnyHandler } from '@coxswain/protocol';
import { type LoadedModule, loadModule } from './load-module.ts';

/** The member and the files of its module, or a sentence about the problem. */
export type Found<Member> =
  | readonly [member: Member, problem: null, files: readonly string[]]
  | readonly [member: undefined, problem: string, files: readonly string[]];

/** A handler and the files of its module, or a sentence about the problem. */
export type FoundHandler = Found<AnyHandler>;

/**
 * Loads `./policy.js#rejectSecrets`: the function with that name, or the module's default export without a name. Never
 * rejects.
 * @param folder the folder of relative paths.
 * @param modules modules that are loaded already. They are not loaded again, and new ones are added.
 */
export function loadHandler(
  spec: string,
  folder: string,
  modules: Map<string, Promise<LoadedModule>>,
): Promise<FoundHandler> {
  return loadMember(spec, folder, modules, 'function', isFunction);
}

/**
 * Loads `./stock.ts#stockLevel`: the tool, or the list of tools, that the module exports under the name. Never rejects.
 * It does not check whether the tool is valid.
 */
export function loadTool(
  spec: string,
  folder: string,
  modules: Map<string, Promise<LoadedModule>>,
): Promise<Found<object>> {
  return loadMember(spec, folder, modules, 'tool', isTool);
}

const isFunction = (member: unknown): member is AnyHandler => typeof member === 'function';
const isTool = (member: unknown): member is object =>
  typeof member === 'object' && member !== null && (Array.isArray(member) || Object.hasOwn(member, 'execute'));

async function loadMember<Member>(
  spec: string,
  folder: string,
  modules: Map<string, Promise<LoadedModule>>,
  kind: string,
  is: (member: unknown) => member is Member,
): Promise<Found<Member>> {
  const failed = (problem: string): Found<Member> => [undefined, problem, []];
  const named = readHandlerName(spec, folder);
  if ('problem' in named) return failed(named.problem);
  const { file, name } = named;
  const loading = modules.get(file) ?? loadModule(file);
  modules.set(file, loading);
  try {
    const { exports, files } = await loading;
    const members = { ...membersOf(exports.default), ...exports };
    const found = Object.hasOwn(members, name) ? members[name] : undefined;
    if (is(found)) return [found, null, files];
    const others = Object.keys(members).filter((key) => is(members[key]));
    const has = others.length > 0 ? `it exports ${others.join(', ')}` : `it exports no ${kind}`;
    return failed(`${file} has no ${kind} ${name}; ${has}`);
  } catch (error) {
    return failed((error as Error).message);
  }
}

// A CommonJS module exports one object, which becomes the default export here.
function membersOf(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : {};
}

/**
 * Parses `./policy.js#rejectSecrets` into the path of the file and the name of the export. It does not check whether
 * they exist.
 */
export function readHandlerName(
  spec: string,
  folder: string,
): { readonly file: string; readonly name: string } | { readonly problem: string } {
  const [path = '', name = 'default', ...rest] = spec.split('#');
  if (path.trim() === '' || name === '' || rest.length > 0)
    return { problem: `write ./file.js#name, not ${JSON.stringify(spec)}` };
  return { file: resolve(folder, path), name };
}
