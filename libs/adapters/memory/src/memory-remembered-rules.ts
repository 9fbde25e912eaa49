/** Remembered permission rules of personas, in memory. */
import type { RememberedRules } from '@coxswain/ports';
import { BOUNDS, bindingProblem, type StoredRule } from '@coxswain/protocol';

/** Creates an empty store. Hosts that share a store see each other's rules. */
export function createMemoryRememberedRules(): RememberedRules {
  const kept = new Map<string, StoredRule>();
  return {
    async of(tenant, holder) {
      return [...kept]
        .filter(([key, { revoked }]) => key.startsWith(`${tenant} `) && !revoked)
        .map(([, { rule }]) => rule)
        .filter((rule) => bindingProblem(rule, holder) === null)
        .slice(-BOUNDS.rememberedRulesMax);
    },
    async keep(tenant, stored) {
      const { persona, session, id } = stored.rule;
      const key = `${tenant} ${persona} ${session} ${id}`;
      if (stored.revoked || !kept.has(key)) kept.set(key, stored);
    },
  };
}
