/**
 * Remembered rules: their creation, the calls that they decide, and their revocation. `rulingOn` (calls/ruling.ts)
 * combines them with the other rules. A new rule changes no call that already waits for its approval: `nextToPark`
 * (calls/batch.ts) asks for the ruling only before the wait. The host stores the rules of a persona:
 * `SessionWork.reconcile` (session-work.ts in libs/session).
 */
import {
  BOUNDS,
  bindingProblem,
  canonicalJson,
  type EventOf,
  type Json,
  matchOf,
  type RememberedRule,
  type RuleBinding,
  type Ruling,
  rememberedFor,
  type SessionEvent,
} from '@coxswain/protocol';
import type { Command } from '../../core/commands.ts';
import type { SessionContext } from '../../core/context.ts';
import { actorMember, controlOutcome, type Decision, events, reject } from '../../core/decision.ts';
import type { CallRow } from '../calls/state.ts';
import type { KnownRule } from './state.ts';

const NONE: readonly RememberedRule[] = [];

/**
 * The binding that a rule gets in this run, and that applicable rules have (REMEMBER-4, libs/protocol,
 * remembered-rules.ts). Null before the first provision, and if an earlier release recorded the provision without
 * identity or root.
 */
export function currentBinding({ pinned }: Pick<SessionContext, 'pinned'>): RuleBinding | null {
  if (!pinned?.identity || pinned.root === undefined) return null;
  return { persona: pinned.persona, root: pinned.root, ...pinned.identity };
}

/**
 * The applicable rules: those of this session, and those of its persona at the last provision. Without rules that this
 * session has revoked, and without rules with another binding ({@link currentBinding}).
 */
function rulesIn(context: SessionContext): readonly RememberedRule[] {
  const { remembered, persona_rules } = context;
  const holder = currentBinding(context);
  if (holder === null || remembered.length + persona_rules.length === 0) return NONE;
  const revokedRules = remembered.filter(({ revoked }) => revoked);
  return [
    ...remembered.filter(({ revoked }) => !revoked),
    ...persona_rules.filter((rule) => !revokedRules.some((one) => isSameRule(one, rule))),
  ].filter((rule) => bindingProblem(rule, holder) === null);
}

// In a copy, a rule of the session names the copy, and the persona's one names the origin. So the sessions are not compared.
function isSameRule(one: RememberedRule, other: RememberedRule): boolean {
  const content = ({ id, tool, action, match }: RememberedRule) => canonicalJson([id, tool, action, match] as Json);
  return one.id === other.id && content(one) === content(other);
}

// A cache, like `rulings` in calls/ruling.ts: the same rows and lists are evaluated many times.
const rulings = new WeakMap<
  CallRow,
  { readonly own: unknown; readonly persona: unknown; readonly pinned: unknown; readonly ruling: Ruling | null }
>();

/** The remembered decision about a call that needs an approval; null without one. */
export function rememberedRuling(context: SessionContext, row: CallRow): Ruling | null {
  const { remembered: own, persona_rules: persona, pinned } = context;
  if (own.length + persona.length === 0) return null;
  const cached = rulings.get(row);
  if (cached?.own === own && cached.persona === persona && cached.pinned === pinned) return cached.ruling;
  const rule = rememberedFor(rulesIn(context), row.tool, row.args);
  const ruling = rule ? { action: rule.action, rule: `remembered:${rule.id}` } : null;
  rulings.set(row, { own, persona, pinned, ruling });
  return ruling;
}

/**
 * The event of `remember` in an `approve`, in addition to those of its decision.
 * @param args the decided arguments, edited or not.
 * @returns the event in a list, an empty list without `remember`, or the rejection of the command.
 */
export function rememberedBy(
  context: SessionContext,
  input: Command<'approve'>,
  row: CallRow,
  args: Json,
  atMs: number,
): readonly SessionEvent[] | Decision {
  const { remember: scope, reason, decision } = input.body;
  if (scope === undefined) return [];
  const field = { field: 'remember' };
  if (row.in_doubt)
    return reject(
      input,
      'not_rememberable',
      'the approval is about the unknown outcome of this call, which no later call matches',
      field,
    );
  const holder = currentBinding(context);
  if (holder === null)
    return reject(
      input,
      'not_rememberable',
      'an earlier version started this session and recorded no identity of its persona',
      field,
    );
  const match = matchOf(row.tool, args);
  if (typeof match === 'string') return reject(input, 'not_rememberable', match, field);
  if (context.remembered.filter(({ revoked }) => !revoked).length >= BOUNDS.rememberedRulesMax)
    return reject(
      input,
      'too_many_rules',
      `the session already remembers ${BOUNDS.rememberedRulesMax} rules, which is the limit`,
      field,
    );
  const rule: RememberedRule = {
    id: input.command_id,
    session: context.session_id,
    scope,
    ...holder,
    tool: row.tool,
    match,
    action: decision,
    ...actorMember(input),
    ...(reason === undefined ? {} : { reason }),
    at: new Date(atMs).toISOString(),
  };
  return [{ type: 'permission_remembered', call_id: row.call_id, rule }];
}

/** Decides a `revoke` of one of the session's own rules (`remembered`), revoked or not; null for any other target. */
export function decideRevokeRule(context: SessionContext, input: Command<'revoke'>, atMs: number): Decision | null {
  const target = input.body.command_id;
  const rule = context.remembered.find(({ id }) => id === target);
  if (!rule) return null;
  if (rule.revoked)
    return reject(input, 'already_revoked', `the rule ${rule.id} is already revoked`, { field: 'command_id' });
  const { command_id } = input;
  const at = new Date(atMs).toISOString();
  return events(controlOutcome(context.session_id, input, 'revoked'), {
    type: 'permission_forgotten',
    rule_id: rule.id,
    command_id,
    ...actorMember(input),
    at,
  });
}

/** The session's own rules after one was remembered or revoked. */
export function rulesAfter(
  rules: readonly KnownRule[],
  event: EventOf<'permission_remembered'> | EventOf<'permission_forgotten'>,
): readonly KnownRule[] {
  if (event.type === 'permission_forgotten') {
    const { rule_id, actor, at } = event;
    return rules.map((rule) => (rule.id === rule_id ? { ...rule, revoked: { actor, at } } : rule));
  }
  // Revoked rules are kept for `decideRevokeRule` and `rulesIn`. Beyond twice the bound the oldest of them is removed.
  const excess = rules.length - 2 * BOUNDS.rememberedRulesMax + 1;
  const oldest = excess > 0 ? rules.find(({ revoked }) => revoked) : undefined;
  return [...rules.filter((rule) => rule !== oldest), event.rule];
}

/** The event with a persona's rules at a provision; none if they have not changed. */
export function buildPermissionsChanged(
  { persona_rules }: SessionContext,
  rules: readonly RememberedRule[] = NONE,
): SessionEvent[] {
  const isSame = canonicalJson(rules as unknown as Json) === canonicalJson(persona_rules as unknown as Json);
  return isSame ? [] : [{ type: 'permissions_changed', rules: [...rules] }];
}
