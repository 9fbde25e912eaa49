/** Declares handlers of hooks, held to their points by the compiler. Imports nothing at run time. */
import type { ExactHooks, HookDefinitions } from '@coxswain/protocol';

/**
 * Declares the handlers of a module: `export default defineHooks({ PreToolUse: … })`. Points are named in
 * PascalCase; snake_case is an alias. A value is a handler, a handler with settings, or a list of them. A payload that has no such field, or a
 * return that has no meaning at its point, does not compile (helpers: `allow`, `deny`, `ask`, `rewrite`, `remind`); nor does a key that it has not, however optional its others.
 * @returns what it was given: whoever loads the module checks it.
 */
export function defineHooks<const Hooks extends HookDefinitions>(hooks: Hooks & ExactHooks<Hooks>): HookDefinitions {
  return hooks;
}
