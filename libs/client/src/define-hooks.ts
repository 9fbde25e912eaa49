/** Declares hook handlers, with types for each hook point. Imports nothing at run time. */
import type { ExactHooks, HookDefinitions } from '@coxswain/protocol';

/**
 * Declares the hook handlers of a module: `export default defineHooks({ PreToolUse: … })`. Points are named in
 * PascalCase; snake_case is an alias. A value is a handler, a handler with settings, or a list of them. The compiler
 * rejects unknown points and keys, unknown fields of a payload, and return values that the point does not accept.
 * Helpers for return values: `allow`, `deny`, `ask`, `rewrite`, `remind`.
 * @returns its argument. The loader of the module validates it.
 */
export function defineHooks<const Hooks extends HookDefinitions>(hooks: Hooks & ExactHooks<Hooks>): HookDefinitions {
  return hooks;
}
