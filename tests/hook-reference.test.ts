/** The reference of hooks describes what each point receives. */
import { HOOK_PAYLOADS, HOOK_POINTS, pascalNameOfPoint } from '@coxswain/protocol';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { hookReference } from '../scripts/reference/hooks.ts';

const reference = hookReference();

describe('docs/reference/hooks.md has, for', () => {
  test.each(HOOK_POINTS)('%s, a row and the members of its payload', (point) => {
    const rows = reference.split('\n').filter((line) => line.startsWith(`| \`${pascalNameOfPoint(point)}\` |`));
    expect(rows).toHaveLength(2);
    const { properties = {} } = z.toJSONSchema(HOOK_PAYLOADS[point], { io: 'input', unrepresentable: 'any' });
    for (const member of Object.keys(properties).slice(4)) expect(rows[1]).toMatch(new RegExp(`\`${member}\\??\``));
  });
});
