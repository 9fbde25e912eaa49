/** The reference of hooks says of each point what it is shown. */
import { HOOK_PAYLOADS, HOOK_POINTS, hookPointName } from '@coxswain/protocol';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { hookReference } from '../scripts/reference/hooks.ts';

const reference = hookReference();

describe('docs/reference/hooks.md has of', () => {
  test.each(HOOK_POINTS)('%s a row, the members of its payload, and their schema', (point) => {
    const rows = reference.split('\n').filter((line) => line.startsWith(`| \`${hookPointName(point)}\` |`));
    expect(rows).toHaveLength(2);
    const [, schema] = reference.split(`<summary>Schema of <code>${hookPointName(point)}</code></summary>`);
    const documented = JSON.parse(/```json\n([\s\S]*?)\n```/.exec(schema ?? '')?.[1] ?? 'null');
    expect(documented).toMatchObject({ type: 'object', additionalProperties: false });
    expect(documented.properties.event).toEqual({ type: 'string', const: point });
    expect(Object.keys(documented.properties)).toEqual(Object.keys(HOOK_PAYLOADS[point].shape));
    const { properties = {} } = z.toJSONSchema(HOOK_PAYLOADS[point], { io: 'input', unrepresentable: 'any' });
    for (const member of Object.keys(properties).slice(4)) expect(rows[1]).toMatch(new RegExp(`\`${member}\\??\``));
  });
});
