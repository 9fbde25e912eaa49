import { randomUUID } from 'node:crypto';
import type { RememberedRules } from '@coxswain/ports';
import { type RememberedRule, type RuleBinding, TenantId } from '@coxswain/protocol';
import { describe, expect, test } from 'vitest';

const tenant = TenantId.parse('default');

/** What every store of what personas remember promises. */
export function rememberedRulesContract(name: string, rules: () => RememberedRules): void {
  const held = (persona: string): RuleBinding => ({ persona, source: 'host', fingerprint: 'f1', root: '/work' });
  const rule = (persona: string, id: string, more: Partial<RememberedRule> = {}): RememberedRule => ({
    id,
    session: 's1',
    scope: 'persona',
    ...held(persona),
    tool: 'write_file',
    match: { kind: 'path', path: 'a.txt' },
    action: 'allow',
    at: '2026-01-01T00:00:00.000Z',
    ...more,
  });
  const fresh = () => `p-${randomUUID()}`;

  describe(`what personas remember in ${name}`, () => {
    test('is theirs alone, the oldest first', async () => {
      const [persona, other] = [fresh(), fresh()];
      const later = rule(persona, 'first-by-name', { at: '2026-02-02T00:00:00.000Z' });
      const earlier = rule(persona, 'second-by-name');
      await rules().keep(tenant, { rule: earlier });
      await rules().keep(tenant, { rule: later });
      await rules().keep(tenant, { rule: rule(other, 'x') });
      expect(await rules().of(tenant, held(persona))).toEqual([earlier, later]);
      expect(await rules().of(TenantId.parse('other'), held(persona))).toEqual([]);
      expect(await rules().of(tenant, held(fresh()))).toEqual([]);
    });

    test.each([
      ['root', { root: '/elsewhere' }],
      ['source of the definition', { source: 'request' as const }],
      ['definition', { fingerprint: 'f2' }],
    ])('is bound to the %s', async (_, other) => {
      const persona = fresh();
      await rules().keep(tenant, { rule: rule(persona, 'bound') });
      expect(await rules().of(tenant, { ...held(persona), ...other })).toEqual([]);
    });

    test('is one rule for each session and id, however often it is put there', async () => {
      const persona = fresh();
      const own = rule(persona, 'same');
      const elsewhere = rule(persona, 'same', { session: 's2', at: '2026-03-03T00:00:00.000Z' });
      for (const one of [own, own, elsewhere, { ...own, action: 'deny' as const }])
        await rules().keep(tenant, { rule: one });
      expect(await rules().of(tenant, held(persona))).toEqual([own, elsewhere]);
    });

    test('is gone once it is revoked, and comes back by nothing', async () => {
      const persona = fresh();
      const gone = rule(persona, 'gone');
      await rules().keep(tenant, { rule: gone });
      await rules().keep(tenant, { rule: gone, revoked: { at: '2026-04-04T00:00:00.000Z' } });
      await rules().keep(tenant, { rule: gone });
      expect(await rules().of(tenant, held(persona))).toEqual([]);
      // Also where its revocation was quicker.
      const never = rule(persona, 'never');
      await rules().keep(tenant, { rule: never, revoked: { at: '2026-04-04T00:00:00.000Z' } });
      await rules().keep(tenant, { rule: never });
      expect(await rules().of(tenant, held(persona))).toEqual([]);
    });
  });
}
