/**
 * Crews: derived ids of children, inherited rules, and reserved actor names.
 */
import { describe, expect, test } from 'vitest';
import {
  BOUNDS,
  type CrewVerb,
  ceilingBelow,
  childIdOf,
  DELEGATE_TOOL,
  HANDOFF_TOOL,
  isSessionActor,
  type PinnedPermissions,
  parseCrewCommand,
  ruleOn,
  SEND_MESSAGE_TOOL,
  SessionId,
  sessionActor,
  ToolDefinition,
} from '../src/mod.ts';

const allow: PinnedPermissions = { rules: [{ tool: '*', action: 'allow' }], default: 'ask' };
const rules = (tool: string, action: 'ask' | 'deny'): PinnedPermissions => ({
  rules: [{ tool, action }, ...allow.rules],
  default: 'ask',
});
const below = (session: string, above: PinnedPermissions, own = allow): PinnedPermissions => ({
  ...own,
  ceiling: ceilingBelow(session, above),
});

describe('the id of a child', () => {
  test('is a session id, the same for the same effect and different for every other', () => {
    const ids = ['a', 'b', 'a-1', 'x'.repeat(64)].flatMap((parent) =>
      Array.from({ length: 200 }, (_, n) => childIdOf(parent, `${n}-${n % 3}`)),
    );
    expect(new Set(ids).size).toBe(800);
    for (const id of ids) expect(SessionId.safeParse(id).success).toBe(true);
    expect(childIdOf('a', '3-0')).toBe(childIdOf('a', '3-0'));
  });
});

describe('of the rules of a session and its ancestors', () => {
  test.each([
    ['deny', 'deny'],
    ['ask', 'ask'],
  ] as const)('%s applies if the child would allow', (action, ruling) => {
    const child = below('top', rules('write_*', action));
    expect(ruleOn(child, 'write_file', {})).toEqual({ action: ruling, rule: 'session top: rules[0]' });
    expect(ruleOn(child, 'read_file', {})).toEqual({ action: 'allow', rule: 'rules[0]' });
  });

  test('the strictest applies over all generations, and names its session', () => {
    const middle = below('top', rules('a', 'deny'), rules('b', 'ask'));
    const child = below('middle', middle);
    expect(['a', 'b', 'c'].map((tool) => ruleOn(child, tool, {}))).toEqual([
      { action: 'deny', rule: 'session top: rules[0]' },
      { action: 'ask', rule: 'session middle: rules[0]' },
      { action: 'allow', rule: 'rules[0]' },
    ]);
  });

  test('a stricter rule of the child is reported as its own', () => {
    const child = below('top', rules('a', 'ask'), rules('a', 'deny'));
    expect(ruleOn(child, 'a', {})).toEqual({ action: 'deny', rule: 'rules[0]' });
  });

  test('a default of an ancestor applies too', () => {
    const child = below('top', { rules: [], default: 'ask' });
    expect(ruleOn(child, 'a', {})).toEqual({ action: 'ask', rule: 'session top: default' });
    expect(ruleOn(child, 'read_file', {})).toEqual({ action: 'allow', rule: 'rules[0]' });
  });

  test('equal rules are inherited once', () => {
    let rulesOf: PinnedPermissions = allow;
    for (let depth = 0; depth < BOUNDS.depthMax; depth++) rulesOf = below(`s${depth}`, rulesOf);
    expect(rulesOf.ceiling).toEqual([{ session: 's0', permissions: allow }]);
  });
});

test('the actor name of a session is reserved', () => {
  expect(isSessionActor(sessionActor('s1').name)).toBe(true);
  expect([' session:s1', 'session', 'a session:s1'].map(isSessionActor)).toEqual([true, false, false]);
});

test('the tools of crews are valid tool definitions', () => {
  for (const tool of [DELEGATE_TOOL, HANDOFF_TOOL, SEND_MESSAGE_TOOL]) expect(ToolDefinition.parse(tool)).toEqual(tool);
});

test.each<[CrewVerb, object, string, string]>([
  ['message', { from: 's1', hops: 0, body: 'x' }, 'invalid_field', 'hops'],
  ['message', { from: 's1', hops: 1, body: ' ' }, 'invalid_field', 'body'],
  ['message', { from: 'a.b', hops: 1, body: 'x' }, 'invalid_field', 'from'],
  ['message', { from: 's1', hops: 1, body: 'x', mode: 'shout' }, 'invalid_field', 'mode'],
  ['cancel_child', { from: 's1', effect_id: '3' }, 'invalid_field', 'effect_id'],
  ['child_ended', { session: 's1', effect_id: '3-0', answer: 'x' }, 'unknown_field', 'answer'],
  ['start_child', { prompt: 'x' }, 'invalid_field', 'parent'],
])('a %s as %j is rejected by name', (verb, body, code, field) => {
  const read = parseCrewCommand(verb, new TextEncoder().encode(JSON.stringify(body)));
  expect(read).toMatchObject({ ok: false, problem: { code, field } });
});
