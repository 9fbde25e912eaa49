/** Declares handlers of hooks, held to their points by the compiler. Imports nothing at run time. */
import type { ExactHooks, HookDefinitions } from '@coxswain/protocol';

/**
 * Declares the hook handlers of a module: `export default defineHooks({ PreToolUse: … })`. Points are named in
 * PascalCase; snake_case is an alias. A value is a handler, a handler with settings, or a list of them. Unknown points
 * and keys, unknown fields of a payload, and returns that the point does not accept do not compile. Helpers for
 * returns: `allow`, `deny`, `ask`, `rewrite`, `remind`.
 * @returns its argument. The loader of the module validates it.
 */
export function defineHooks<const Hooks extends HookDefinitions>(hooks: Hooks & ExactHooks<Hooks>): HookDefinitions {
  return hooks;
}
