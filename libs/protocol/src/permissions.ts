/** Permission rules: which calls run, which are refused, which wait for a person. First match wins. */
import { z } from 'zod';
import { BOUNDS } from './bounds.ts';
import type { Json } from './json.ts';
import { ConditionText, conditionHolds, Glob, globMatches, parseCondition } from './patterns.ts';

/** What a rule says of a call. */
export const PermissionAction = z.enum(['allow', 'deny', 'ask']);
/** See {@link PermissionAction}. */
export type PermissionAction = z.infer<typeof PermissionAction>;

/** One rule: a glob on the tool's name and, if given, a condition on the arguments. */
export const PermissionRule = z.strictObject({
  /** Never empty: a rule that nobody has thought of must not cover every tool. `*` says that it does. */
  tool: Glob.min(1, { error: 'a glob on tool names is needed; * stands for every tool' }),
  when: ConditionText.optional(),
  action: PermissionAction,
});
/** See {@link PermissionRule}. */
export type PermissionRule = z.infer<typeof PermissionRule>;

/** Rules, and what holds where none matches, as a persona or a start says them. A default that is not said is left open. */
export const Permissions = z.strictObject({
  rules: z.array(PermissionRule).max(BOUNDS.permissionRulesMax).default([]),
  default: PermissionAction.optional(),
});
/** See {@link Permissions}. */
export type Permissions = z.infer<typeof Permissions>;

/** What a run is held to: nothing is left open. */
export const PinnedPermissions = z.strictObject({ ...Permissions.shape, default: PermissionAction });
/** See {@link PinnedPermissions}. */
export type PinnedPermissions = z.infer<typeof PinnedPermissions>;

const FROM_LOOSE_TO_STRICT: readonly PermissionAction[] = ['allow', 'ask', 'deny'];
const DEFAULT_ACTION: PermissionAction = 'ask';

/** What a start and its persona say together. The start may tighten the persona's default, and say one that is left open. */
export function pinPermissions(persona: Permissions | undefined, start: Permissions | undefined): PinnedPermissions {
  const defaults = [persona?.default, start?.default].filter((action) => action !== undefined);
  return {
    rules: [...(start?.rules ?? []), ...(persona?.rules ?? [])].slice(0, BOUNDS.permissionRulesMax),
    default: defaults.length === 0 ? DEFAULT_ACTION : defaults.reduce(stricter),
  };
}

function stricter(a: PermissionAction, b: PermissionAction): PermissionAction {
  return FROM_LOOSE_TO_STRICT.indexOf(a) > FROM_LOOSE_TO_STRICT.indexOf(b) ? a : b;
}

/**
 * The rules that stand behind a persona's own: looking inside the root is allowed, changing it or running
 * something asks. `park` only puts the session itself to rest.
 */
export const BUILT_IN_RULES: readonly PermissionRule[] = [
  { tool: 'read_file', action: 'allow' },
  { tool: 'list_files', action: 'allow' },
  { tool: 'search_files', action: 'allow' },
  { tool: 'notify_file_edited', action: 'allow' },
  { tool: 'write_file', action: 'ask' },
  { tool: 'append_file', action: 'ask' },
  { tool: 'edit_file', action: 'ask' },
  { tool: 'run_command', action: 'ask' },
];

/** What the rules decided, and which of them did: an index into the persona's rules, `built_in` or `default`. */
export interface Ruling {
  readonly action: PermissionAction;
  readonly rule: string;
}

/** Decides one call by rules: the persona's in order, then the built-in ones, then the persona's default. */
export function ruleOn(permissions: Permissions, tool: string, args: Json): Ruling {
  for (const [index, rule] of permissions.rules.entries()) {
    if (ruleMatches(rule, tool, args)) return { action: rule.action, rule: `rules[${index}]` };
  }
  for (const rule of BUILT_IN_RULES) {
    if (ruleMatches(rule, tool, args)) return { action: rule.action, rule: `built_in:${rule.tool}` };
  }
  return { action: permissions.default ?? DEFAULT_ACTION, rule: 'default' };
}

function ruleMatches(rule: PermissionRule, tool: string, args: Json): boolean {
  if (!globMatches(rule.tool, tool)) return false;
  if (rule.when === undefined) return true;
  const condition = parseCondition(rule.when);
  return typeof condition !== 'string' && conditionHolds(condition, args);
}
