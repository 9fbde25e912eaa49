/**
 * Permission rules: the first match wins; the persona's own, then the built-in ones, then its default.
 */
import { describe, expect, test } from 'vitest';
import { BOUNDS, BUILT_IN_RULES, Permissions, PinnedPermissions, pinPermissions, ruleOn } from '../src/mod.ts';
import type { PermissionAction } from '../src/personas/permissions.ts';

const rules = (...list: { tool: string; when?: string; action: PermissionAction }[]) =>
  Permissions.parse({ rules: list });

describe('rules', () => {
  test('the first match wins', () => {
    const permissions = rules(
      { tool: 'run_*', when: 'command =~ "^git "', action: 'allow' },
      { tool: 'run_*', action: 'deny' },
      { tool: '*', action: 'allow' },
    );
    expect(ruleOn(permissions, 'run_command', { command: 'git status' })).toEqual({
      action: 'allow',
      rule: 'rules[0]',
    });
    expect(ruleOn(permissions, 'run_command', { command: 'rm -rf /' })).toEqual({ action: 'deny', rule: 'rules[1]' });
    expect(ruleOn(permissions, 'fetch', {})).toEqual({ action: 'allow', rule: 'rules[2]' });
  });

  // The rules of a call share one budget. Without it, 256 such rules would block a host for minutes.
  test('beyond the budget for regular expressions only rules that do not allow the call match', () => {
    const costly = 'content =~ "[ab]{400}c"';
    const content = 'ab'.repeat(10_000);
    expect(ruleOn(rules({ tool: 'x', when: costly, action: 'deny' }), 'x', { content }).rule).toBe('default');
    const many = (action: PermissionAction) =>
      rules(...Array.from({ length: 200 }, () => ({ tool: 'x', when: costly, action })));
    expect(ruleOn(many('allow'), 'x', { content })).toEqual({ action: 'ask', rule: 'default' });
    expect(ruleOn(many('deny'), 'x', { content })).toEqual({ action: 'deny', rule: 'rules[1]' });
    // A condition that is too costly leaves the budget to the others.
    const cheap = { tool: 'x', when: 'path =~ "^secrets/"', action: 'deny' as const };
    const long = { content: 'ab'.repeat(50_000), path: 'docs/a.txt' };
    const first = rules({ tool: 'x', when: costly, action: 'allow' }, cheap);
    expect(ruleOn(first, 'x', long).rule).toBe('default');
    expect(ruleOn(first, 'x', { ...long, path: 'secrets/a.txt' }).action).toBe('deny');
  });

  test('a condition on a missing member does not match', () => {
    const permissions = rules({ tool: 'x', when: 'path =~ "."', action: 'allow' });
    expect(ruleOn(permissions, 'x', {})).toEqual({ action: 'ask', rule: 'default' });
    expect(ruleOn(permissions, 'x', null)).toEqual({ action: 'ask', rule: 'default' });
    expect(ruleOn(permissions, 'x', 'text')).toEqual({ action: 'ask', rule: 'default' });
  });

  test('a persona’s rules precede the built-in ones, which precede its default', () => {
    expect(ruleOn(rules({ tool: 'read_file', action: 'deny' }), 'read_file', {}).action).toBe('deny');
    const open = Permissions.parse({ default: 'allow' });
    expect(ruleOn(open, 'write_file', {})).toEqual({ action: 'ask', rule: 'built_in:write_file' });
    expect(ruleOn(open, 'files__write', {})).toEqual({ action: 'allow', rule: 'default' });
  });

  test.each([
    ['read_file', 'allow'],
    ['list_files', 'allow'],
    ['search_files', 'allow'],
    ['notify_file_edited', 'allow'],
    ['write_file', 'ask'],
    ['append_file', 'ask'],
    ['edit_file', 'ask'],
    ['run_command', 'ask'],
    ['anything_else', 'ask'],
  ])('built-in rules: %s is %s', (tool, action) => {
    expect(ruleOn(Permissions.parse({}), tool, {}).action).toBe(action);
  });

  test('each built-in rule can match a tool', () => {
    for (const rule of BUILT_IN_RULES)
      expect(ruleOn(Permissions.parse({}), rule.tool, {}).rule).toBe(`built_in:${rule.tool}`);
  });

  test('an unparsable rule is rejected when it is given, not when it is used', () => {
    expect(Permissions.safeParse({ rules: [{ tool: '*', when: 'path =~ "["', action: 'allow' }] }).success).toBe(false);
    expect(Permissions.safeParse({ rules: [{ tool: '*', action: 'allow', wen: '' }] }).success).toBe(false);
  });
});

describe('the rules of a start', () => {
  type Said = { rules?: { tool: string; when?: string; action: PermissionAction }[]; default?: PermissionAction };
  const rule = (tool: string, action: PermissionAction, when?: string) => ({ tool, action, ...(when ? { when } : {}) });
  const together = (persona: Said | undefined, start: Said | undefined) =>
    PinnedPermissions.parse(pinPermissions(persona && Permissions.parse(persona), start && Permissions.parse(start)));

  type Case = [what: string, persona: Said | undefined, start: Said, tool: string, action: string, by: string];
  const cases: Case[] = [
    [
      'denies what is allowed',
      { rules: [rule('*', 'allow')] },
      { rules: [rule('x', 'deny')] },
      'x',
      'deny',
      'rules[0]',
    ],
    [
      'asks for what is allowed',
      { rules: [rule('*', 'allow')] },
      { rules: [rule('x', 'ask')] },
      'x',
      'ask',
      'rules[0]',
    ],
    [
      'leaves what it does not name',
      { rules: [rule('*', 'allow')] },
      { rules: [rule('x', 'deny')] },
      'y',
      'allow',
      'rules[1]',
    ],
    [
      'allows nothing that is denied',
      { rules: [rule('x', 'deny')] },
      { rules: [rule('*', 'allow')] },
      'x',
      'deny',
      'rules[1]',
    ],
    [
      'allows nothing that asks',
      { rules: [rule('x', 'ask')] },
      { rules: [rule('*', 'allow')] },
      'x',
      'ask',
      'rules[1]',
    ],
    [
      'asks for nothing that is denied',
      { rules: [rule('x', 'deny')] },
      { rules: [rule('*', 'ask')] },
      'x',
      'deny',
      'rules[1]',
    ],
    [
      'allows nothing against a named default',
      { default: 'deny' },
      { rules: [rule('*', 'allow')] },
      'x',
      'deny',
      'default',
    ],
    [
      'allows what is left open',
      { rules: [rule('y', 'ask')] },
      { rules: [rule('x', 'allow')] },
      'x',
      'allow',
      'rules[0]',
    ],
    [
      'allows what only asks as built in',
      { rules: [rule('y', 'ask')] },
      { rules: [rule('run_command', 'allow')] },
      'run_command',
      'allow',
      'rules[0]',
    ],
    ...(['run_command', 'read_file'] as const).map(
      (tool): Case => [
        `allows nothing against a named deny, also not what is built in: ${tool}`,
        { default: 'deny' },
        { rules: [rule('*', 'allow')] },
        tool,
        'deny',
        'default',
      ],
    ),
    [
      'allows what is built in where the persona’s rules do, whatever it denies by default',
      { rules: [rule('run_command', 'allow')], default: 'deny' },
      { rules: [rule('*', 'allow')] },
      'run_command',
      'allow',
      'rules[0]',
    ],
    [
      'does not allow what asks, as built in and by a named default',
      { default: 'ask' },
      { rules: [rule('*', 'allow')] },
      'run_command',
      'ask',
      'default',
    ],
    [
      'leaves looking allowed under a named ask',
      { default: 'ask' },
      { rules: [rule('*', 'allow')] },
      'read_file',
      'allow',
      'rules[0]',
    ],
    [
      'allows what asks as built in under a named allow',
      { default: 'allow' },
      { rules: [rule('run_command', 'allow')] },
      'run_command',
      'allow',
      'rules[0]',
    ],
    ['is all there is', undefined, { rules: [rule('x', 'allow')], default: 'deny' }, 'x', 'allow', 'rules[0]'],
    [
      'goes in its own order',
      { rules: [rule('*', 'allow')] },
      { rules: [rule('x', 'allow'), rule('x', 'deny')] },
      'x',
      'allow',
      'rules[0]',
    ],
  ];
  test.each(cases)('%s', (_what, persona, start, tool, action, by) => {
    expect(ruleOn(together(persona, start), tool, {})).toEqual({ action, rule: by });
  });

  test('are compared with the persona’s first rule that matches the arguments', () => {
    const both = together(
      { rules: [rule('run', 'allow', 'command =~ "^git "'), rule('run', 'deny')] },
      { rules: [rule('run', 'allow')] },
    );
    expect(ruleOn(both, 'run', { command: 'git status' })).toEqual({ action: 'allow', rule: 'rules[0]' });
    expect(ruleOn(both, 'run', { command: 'rm' })).toEqual({ action: 'deny', rule: 'rules[2]' });
  });

  test('do not displace the persona’s rules, in any number', () => {
    const many = Array.from({ length: BOUNDS.permissionRulesMax }, (_, index) => rule(`t${index}`, 'allow'));
    const both = together({ rules: [...many.slice(1), rule('x', 'deny')] }, { rules: many });
    expect(ruleOn(both, 'x', {}).action).toBe('deny');
  });

  test('are pinned alone if the persona has none, and the persona’s if the start has none', () => {
    const rules = [rule('x', 'allow')];
    expect(together(undefined, { rules })).toEqual({ rules, default: 'ask' });
    const named = { default_covers: 'built_ins' };
    expect(together({ rules, default: 'deny' }, undefined)).toEqual({ rules, default: 'deny', ...named });
    expect(together({ rules, default: 'allow' }, { default: 'ask' })).toEqual({ rules, default: 'ask', ...named });
  });
});

describe('an explicit default', () => {
  test.each([
    ['deny', 'read_file', 'deny', 'default'],
    ['deny', 'run_command', 'deny', 'default'],
    ['ask', 'read_file', 'allow', 'built_in:read_file'],
    ['allow', 'run_command', 'ask', 'built_in:run_command'],
  ] as const)('of %s: %s is %s', (named, tool, action, by) => {
    const persona = Permissions.parse({ default: named });
    expect(ruleOn(pinPermissions(persona, undefined), tool, {})).toEqual({ action, rule: by });
    expect(ruleOn(pinPermissions(undefined, persona), tool, {})).toEqual({ action, rule: by });
  });

  test('in older journals does not apply to built-in tools, as when they were written', () => {
    const rules = [{ tool: '*', action: 'allow' as const }];
    const old = PinnedPermissions.parse({ rules, default: 'deny', persona: { from: 1, default: 'deny' } });
    expect(ruleOn(old, 'run_command', {})).toEqual({ action: 'allow', rule: 'rules[0]' });
    expect(ruleOn(PinnedPermissions.parse({ rules: [], default: 'deny' }), 'read_file', {}).action).toBe('allow');
  });
});
