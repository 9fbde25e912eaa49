/** Rules that people have had remembered: how they come, what they answer, and how they go. */
import {
  BOUNDS,
  type CommandInput,
  canonicalJson,
  type EventOf,
  type Json,
  matchOf,
  type RememberedRule,
  type RememberScope,
  type Ruling,
  rememberedFor,
  type SessionEvent,
} from '@coxswain/protocol';
import type { CallRow, KnownRule, SessionContext } from './context.ts';
import { by, type Decision, events } from './decision.ts';
import { controlOutcome, reject } from './rejection.ts';

const NONE: readonly RememberedRule[] = [];

/** The rules that hold: those of this session that were not revoked, and those that its persona had when the run began. */
function rulesIn({ remembered, persona_rules, pinned }: SessionContext): readonly RememberedRule[] {
  if (remembered.length + persona_rules.length === 0) return NONE;
  const gone = remembered.filter(({ revoked }) => revoked);
  // What was said of a persona holds for that one, whoever has the session.
  const own = remembered.filter(
    ({ revoked, scope, persona }) => !revoked && (scope === 'session' || persona === (pinned?.persona ?? '')),
  );
  // Revoked here, it holds no more here, though the run began with it.
  return [
    ...own,
    ...persona_rules.filter((rule) => !gone.some((one) => one.id === rule.id && one.session === rule.session)),
  ];
}

// As with rulings by rules: asked again and again of the same rows and the same lists.
const rulings = new WeakMap<
  CallRow,
  { readonly own: unknown; readonly persona: unknown; readonly ruling: Ruling | null }
>();

/** What was decided in advance of a call about which a person would be asked; null where nothing was. */
export function rememberedRuling(context: SessionContext, row: CallRow): Ruling | null {
  const { remembered: own, persona_rules: persona } = context;
  if (own.length + persona.length === 0) return null;
  const known = rulings.get(row);
  if (known?.own === own && known.persona === persona) return known.ruling;
  const rule = rememberedFor(rulesIn(context), row.tool, row.args);
  const ruling = rule ? { action: rule.action, rule: `remembered:${rule.id}` } : null;
  rulings.set(row, { own, persona, ruling });
  return ruling;
}

/**
 * What an `approve` with `remember` causes beside its decision.
 * @param args as they were decided: edited ones, where the approver has edited them.
 * @returns the event, nothing where nothing is to be remembered, or the rejection.
 */
export function rememberedBy(
  context: SessionContext,
  input: CommandInput,
  row: CallRow,
  args: Json,
  atMs: number,
): readonly SessionEvent[] | Decision {
  const scope = input.body.remember as RememberScope | undefined;
  if (scope === undefined) return [];
  const field = { field: 'remember' };
  if (row.in_doubt)
    return reject(
      input,
      'not_rememberable',
      'the question is whether this call ran, which no later one is like',
      field,
    );
  const match = matchOf(row.tool, args);
  if (typeof match === 'string') return reject(input, 'not_rememberable', match, field);
  if (context.remembered.filter(({ revoked }) => !revoked).length >= BOUNDS.rememberedRulesMax)
    return reject(input, 'too_many_rules', `${BOUNDS.rememberedRulesMax} rules are remembered already`, field);
  const { reason } = input.body;
  const rule: RememberedRule = {
    id: input.command_id,
    session: context.session_id,
    scope,
    persona: context.pinned?.persona ?? '',
    tool: row.tool,
    match,
    action: input.body.decision as 'allow' | 'deny',
    ...by(input),
    ...(typeof reason === 'string' ? { reason } : {}),
    at: new Date(atMs).toISOString(),
  };
  return [{ type: 'permission_remembered', call_id: row.call_id, rule }];
}

/** Decides a `revoke` of a remembered rule; null where its target is none. */
export function decideForget(context: SessionContext, input: CommandInput, atMs: number): Decision | null {
  const target = input.body.command_id;
  const rule = context.remembered.find(({ id }) => id === target);
  if (!rule) return null;
  if (rule.revoked)
    return reject(input, 'already_revoked', `the rule ${rule.id} is revoked already`, { field: 'command_id' });
  const { command_id } = input;
  const at = new Date(atMs).toISOString();
  return events(controlOutcome(context.session_id, input, 'revoked'), {
    type: 'permission_forgotten',
    rule_id: rule.id,
    command_id,
    ...by(input),
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
  // Of those that are gone the newest are known, for whoever revokes them again.
  const gone = rules.length - 2 * BOUNDS.rememberedRulesMax + 1;
  const oldest = gone > 0 ? rules.find(({ revoked }) => revoked) : undefined;
  return [...rules.filter((rule) => rule !== oldest), event.rule];
}

/** What a run that begins has to say of its persona's rules. */
export function personaRulesChanged(
  { persona_rules }: SessionContext,
  rules: readonly RememberedRule[] = NONE,
): SessionEvent[] {
  const isSame = canonicalJson(rules as unknown as Json) === canonicalJson(persona_rules as unknown as Json);
  return isSame ? [] : [{ type: 'permissions_changed', rules: [...rules] }];
}
