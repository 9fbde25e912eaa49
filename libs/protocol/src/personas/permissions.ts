/**
 * Permission rules: which calls run, which are denied, and which need a human approval. The first matching rule decides,
 * otherwise a default. A start cannot loosen what its persona decides, nor a session what its ancestors decide:
 * {@link ruleOn}. The ruling on a call, with approvals and remembered rules: `rulingOn` (calls/ruling.ts in libs/turn).
 */
import * as z from 'zod';
import { ConditionText, conditionHolds, Glob, globMatches, parseCondition } from '../tools/patterns.ts';
import { BOUNDS } from '../wire/bounds.ts';
import { listOf } from '../wire/containers.ts';
import type { Json } from '../wire/json.ts';
import { type RegexBudget, regexBudget } from '../wire/regular-expressions.ts';

/** The action of a rule. */
export const PermissionAction = z.enum(['allow', 'deny', 'ask']);
export type PermissionAction = z.infer<typeof PermissionAction>;

/** One rule: a glob on the tool's name and, if given, a condition on the arguments. */
export const PermissionRule = z.strictObject({
  /** Never empty, so that an incomplete rule does not match every tool. `*` matches every tool. */
  tool: Glob.min(1, { error: 'a glob on tool names is needed; * stands for every tool' }),
  when: ConditionText.optional(),
  action: PermissionAction,
});
export type PermissionRule = z.infer<typeof PermissionRule>;

/** Rules of a persona or a start, and the action if none matches: see {@link pinPermissions} for an absent default. */
export const Permissions = z.strictObject({
  rules: listOf(PermissionRule).max(BOUNDS.permissionRulesMax).default([]),
  default: PermissionAction.optional(),
  /** A pending approval expires after this time, and the call does not run. Default: never. */
  expire_after_ms: z.number().int().min(BOUNDS.approvalExpiryMinMs).max(BOUNDS.longWaitMaxMs).optional(),
});
export type Permissions = z.infer<typeof Permissions>;

/** The rules of one session, with defaults filled in. The start's rules come first. */
export const BasePermissions = z.strictObject({
  rules: listOf(PermissionRule).max(2 * BOUNDS.permissionRulesMax),
  default: PermissionAction,
  /**
   * Only if the start has rules, and the persona has rules or a default: the index of the persona's first rule, and its
   * explicit default. The start cannot loosen either.
   */
  persona: z.strictObject({ from: z.number().int().nonnegative(), default: PermissionAction.optional() }).optional(),
  /**
   * Present for an explicit default `deny` or `ask`. `deny` precedes the built-in rules. `ask` does not; but if it is the
   * persona's, a rule of the start cannot allow a tool whose built-in rule is `ask`. Absent in older journals.
   */
  default_covers: z.literal('built_ins').optional(),
  /** The shorter one of start and persona. */
  expire_after_ms: z.number().int().positive().optional(),
});
export type BasePermissions = z.infer<typeof BasePermissions>;

/** The rules for a run: its own, those of every ancestor session, and those of the host's policy. */
export const PinnedPermissions = BasePermissions.extend({
  /** The topmost session first. The host's policy is last, as the session `host.policy`. */
  ceiling: listOf(z.strictObject({ session: z.string(), permissions: BasePermissions })).optional(),
});
export type PinnedPermissions = z.infer<typeof PinnedPermissions>;

const FROM_LOOSE_TO_STRICT: readonly PermissionAction[] = ['allow', 'ask', 'deny'];
const DEFAULT_ACTION: PermissionAction = 'ask';

/**
 * Combines the permissions of a start and its persona. The start may tighten the persona's rules, default and
 * expiry, and set a default or an expiry that the persona has not set. The default is the stricter of the two, or `ask` if
 * neither has one. The expiry is the shorter of the two.
 */
export function pinPermissions(persona: Permissions | undefined, start: Permissions | undefined): PinnedPermissions {
  const { rules: own = [], default: named } = persona ?? {};
  const asked = start?.rules ?? [];
  const defaults = [named, start?.default].filter((action) => action !== undefined);
  // As `persona` of `BasePermissions`: the start has rules, and the persona has rules or a default.
  const bothDecide = asked.length > 0 && (own.length > 0 || named !== undefined);
  const stricter = (one: PermissionAction, other: PermissionAction) => (isStricter(other, one) ? other : one);
  const expiries = [persona?.expire_after_ms, start?.expire_after_ms].filter((ms) => ms !== undefined);
  const action = defaults.length === 0 ? null : defaults.reduce(stricter);
  return {
    rules: [...asked, ...own],
    default: action ?? DEFAULT_ACTION,
    ...(bothDecide ? { persona: { from: asked.length, ...(named === undefined ? {} : { default: named }) } } : {}),
    ...(action === null || action === 'allow' ? {} : { default_covers: 'built_ins' as const }),
    ...(expiries.length === 0 ? {} : { expire_after_ms: Math.min(...expiries) }),
  };
}

/** Whether the first action is stricter than the second: `deny`, then `ask`, then `allow`. */
export function isStricter(one: PermissionAction, other: PermissionAction): boolean {
  return FROM_LOOSE_TO_STRICT.indexOf(one) > FROM_LOOSE_TO_STRICT.indexOf(other);
}

/**
 * Rules after a persona's own: tools that change nothing are allowed; changes and commands need an approval. `park` only
 * suspends the session itself.
 */
export const BUILT_IN_RULES: readonly PermissionRule[] = [
  { tool: 'read_file', action: 'allow' },
  { tool: 'list_files', action: 'allow' },
  { tool: 'park', action: 'allow' },
  { tool: 'search_files', action: 'allow' },
  { tool: 'notify_file_edited', action: 'allow' },
  { tool: 'read_result', action: 'allow' },
  { tool: 'load_skill', action: 'allow' },
  { tool: 'write_file', action: 'ask' },
  { tool: 'append_file', action: 'ask' },
  { tool: 'edit_file', action: 'ask' },
  { tool: 'run_command', action: 'ask' },
];

/**
 * The decision, and the rule that made it: `rules[0]`, `built_in:read_file`, `default` or `session <id>: <rule>`; of
 * `rulingOn` also others.
 */
export interface Ruling {
  readonly action: PermissionAction;
  readonly rule: string;
}

type Ruled = Permissions & Pick<PinnedPermissions, 'persona' | 'default_covers'>;

/**
 * Decides one call: by the given rules in order, then the built-in ones, then the default. An explicit default `deny`
 * precedes the built-in rules. A rule of the start applies unless the persona is stricter (its matching rule or
 * default). A rule of the ceiling applies if it is stricter; then `rule` is `session <id>: <rule>`.
 */
export function ruleOn(permissions: Ruled & Pick<PinnedPermissions, 'ceiling'>, tool: string, args: Json): Ruling {
  const budget = regexBudget();
  let ruling = sessionRuling(permissions, tool, args, budget);
  for (const above of permissions.ceiling ?? []) {
    const { action, rule } = sessionRuling(above.permissions, tool, args, budget);
    if (isStricter(action, ruling.action)) ruling = { action, rule: `session ${above.session}: ${rule}` };
  }
  return ruling;
}

/** The decision of one session about a call, without those of its ancestors. */
function sessionRuling(permissions: Ruled, tool: string, args: Json, budget: RegexBudget): Ruling {
  const matches = (rule: PermissionRule) => ruleMatches(rule, tool, args, budget);
  const first = rulingOf(permissions.rules, 0, matches);
  if (first !== null) {
    const ofPersona = personaRuling(permissions, matches);
    return ofPersona !== null && isStricter(ofPersona.action, first.action) ? ofPersona : first;
  }
  const { default: action = DEFAULT_ACTION, default_covers } = permissions;
  const builtIn = default_covers === 'built_ins' && action === 'deny' ? null : builtInOn(matches);
  return builtIn ?? { action, rule: 'default' };
}

function builtInOn(matches: (rule: PermissionRule) => boolean): Ruling | null {
  const builtIn = BUILT_IN_RULES.find(matches);
  return builtIn === undefined ? null : { action: builtIn.action, rule: `built_in:${builtIn.tool}` };
}

function rulingOf(
  rules: readonly PermissionRule[],
  from: number,
  matches: (rule: PermissionRule) => boolean,
): Ruling | null {
  const index = rules.findIndex((rule, at) => at >= from && matches(rule));
  const rule = rules[index];
  return rule === undefined ? null : { action: rule.action, rule: `rules[${index}]` };
}

/**
 * The persona's own decision about a call, which a rule of the start cannot loosen: its first matching rule, otherwise its
 * explicit default. A default `ask` does not restrict a tool that a built-in rule allows. Null if the start has no rules,
 * and if the persona has neither a matching rule nor a default that counts for the tool.
 */
function personaRuling(
  { persona, rules, default_covers }: Ruled,
  matches: (rule: PermissionRule) => boolean,
): Ruling | null {
  if (persona === undefined) return null;
  const byRule = rulingOf(rules, persona.from, matches);
  if (byRule !== null || persona.default === undefined) return byRule;
  const byDefault = { action: persona.default, rule: 'default' };
  const builtIn = builtInOn(matches);
  if (builtIn === null) return byDefault;
  if (default_covers === undefined) return null;
  return persona.default !== 'deny' && isStricter(byDefault.action, builtIn.action) ? builtIn : byDefault;
}

// If the budget does not cover a condition, the rule matches only if it does not allow the call.
function ruleMatches(rule: PermissionRule, tool: string, args: Json, budget: RegexBudget): boolean {
  if (!globMatches(rule.tool, tool)) return false;
  if (rule.when === undefined) return true;
  const condition = parseCondition(rule.when);
  if (typeof condition === 'string') return false;
  return conditionHolds(condition, args, budget) ?? rule.action !== 'allow';
}
