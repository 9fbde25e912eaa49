/** Functions and tools that a file names by module and export. */
import { resolve } from 'node:path';
import type { AnyHandler } from '@coxswain/protocol';
import { type LoadedModule, loadModule } from './load-module.ts';

/** What a name stands for, and the files that it came from; or what is wrong, in one sentence. */
export type Found<Member> =
  | readonly [member: Member, problem: null, files: readonly string[]]
  | readonly [member: undefined, problem: string, files: readonly string[]];

/** A handler and the files that it came from, or what is wrong in one sentence. */
export type FoundHandler = Found<AnyHandler>;

/**
 * Loads `./policy.js#rejectSecrets`: the function of that name, or the module's default where none is named. Never rejects.
 * @param folder where relative paths begin.
 * @param modules those that were loaded before, and are not loaded twice.
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
 * Whether it is a valid tool is not checked.
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

// A CommonJS module exports one object, which is its default here.
function membersOf(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : {};
}

/** The file and the function that `./policy.js#rejectSecrets` names, whether or not they are there; or why it names none. */
export function readHandlerName(
  spec: string,
  folder: string,
): { readonly file: string; readonly name: string } | { readonly problem: string } {
  const [path = '', name = 'default', ...rest] = spec.split('#');
  if (path.trim() === '' || name === '' || rest.length > 0)
    return { problem: `write ./file.js#name, not ${JSON.stringify(spec)}` };
  return { file: resolve(folder, path), name };
}
