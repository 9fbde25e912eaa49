/** Declares handlers of hooks, held to their points by the compiler. Imports nothing at run time. */
import type { HookDefinitions } from '@coxswain/protocol';

/**
 * Declares the handlers of a module: `export default defineHooks({ PreToolUse: … })`. A point may be written in either
 * spelling; its value is a handler, a handler with settings, or a list of them. A payload that has no such field, or a
 * return that has no meaning at its point, does not compile.
 * @returns what it was given: whoever loads the module checks it.
 */
export function defineHooks(hooks: HookDefinitions): HookDefinitions {
  return hooks;
}
