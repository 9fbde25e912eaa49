/** Permission rules: first match wins; the persona's own, then the built-in ones, then its default. */
import { describe, expect, test } from 'vitest';
import { BUILT_IN_RULES, type PermissionAction, Permissions, ruleOn } from '../src/mod.ts';

const rules = (...list: { tool: string; when?: string; action: PermissionAction }[]) =>
  Permissions.parse({ rules: list });

describe('rules', () => {
  test('the first that matches wins', () => {
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

  test('a condition on what is not there does not match', () => {
    const permissions = rules({ tool: 'x', when: 'path =~ "."', action: 'allow' });
    expect(ruleOn(permissions, 'x', {})).toEqual({ action: 'ask', rule: 'default' });
    expect(ruleOn(permissions, 'x', null)).toEqual({ action: 'ask', rule: 'default' });
    expect(ruleOn(permissions, 'x', 'text')).toEqual({ action: 'ask', rule: 'default' });
  });

  test('a persona may overrule what is built in, and what is built in stands before its default', () => {
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
  ])('built in: %s is %s', (tool, action) => {
    expect(ruleOn(Permissions.parse({}), tool, {}).action).toBe(action);
  });

  test('each built-in rule is one that can be met', () => {
    for (const rule of BUILT_IN_RULES)
      expect(ruleOn(Permissions.parse({}), rule.tool, {}).rule).toBe(`built_in:${rule.tool}`);
  });

  test('a rule that does not parse is refused when it is given, not when it is needed', () => {
    expect(Permissions.safeParse({ rules: [{ tool: '*', when: 'path =~ "["', action: 'allow' }] }).success).toBe(false);
    expect(Permissions.safeParse({ rules: [{ tool: '*', action: 'allow', wen: '' }] }).success).toBe(false);
  });
});
