/**
 * Remembered permission rules of personas: one registry key per rule. Only a revocation replaces a stored rule, and
 * nothing replaces a revocation. So storing a rule again after a recovery changes nothing.
 */
import { isTenantsKey, replaceKey, valueIn } from '@coxswain/bus';
import type { RememberedRules } from '@coxswain/ports';
import {
  BOUNDS,
  bindingProblem,
  parseRememberedRule,
  type RememberedRule,
  STREAMS,
  StoredRule,
  subjects,
  type TenantId,
} from '@coxswain/protocol';
import type { NatsConnection } from '@nats-io/nats-core';
import { readRegistry, SMALL_READS_MAX } from './read-keys.ts';
import { readTenantKeys } from './tenant-keys.ts';

/**
 * Creates the port on this connection. Its methods throw as {@link listRememberedRules} and {@link keepRememberedRule}.
 */
export function createNatsRememberedRules(nc: NatsConnection): RememberedRules {
  return {
    async of(tenant, holder) {
      const stored = await listRememberedRules(nc, tenant, holder.persona);
      return stored
        .flatMap(({ rule, revoked }) => (revoked || bindingProblem(rule, holder) !== null ? [] : [rule]))
        .slice(-BOUNDS.rememberedRulesMax);
    },
    keep: (tenant, stored) => keepRememberedRule(nc, tenant, stored),
  };
}

/**
 * Lists the rules of a persona, or of all personas (`*`), including revoked rules, in the order of creation.
 * @throws NoHostRespondsError for a tenant's key if no session host runs; NatsUnavailableError, NatsRefusedError,
 *   NotPermittedError, RecordNotServedError.
 */
export async function listRememberedRules(nc: NatsConnection, tenant: TenantId, persona = '*'): Promise<StoredRule[]> {
  const found = isTenantsKey(nc)
    ? await readTenantKeys(nc, tenant, STREAMS.registry, 'permissions')
    : readRegistry(nc, subjects.rememberedRulesOf(tenant, persona), SMALL_READS_MAX);
  const rules: StoredRule[] = [];
  for await (const { subject, data } of found) {
    const key = parseRememberedRule(subject);
    if (persona !== '*' && key?.persona !== persona) continue;
    const stored = key && valueIn(data, StoredRule);
    if (stored && isUnder(stored.rule, key)) rules.push(stored);
  }
  return rules.sort((one, other) => compare(one.rule.at, other.rule.at) || compare(one.rule.id, other.rule.id));
}

function isUnder(rule: RememberedRule, key: NonNullable<ReturnType<typeof parseRememberedRule>>): boolean {
  return rule.persona === key.persona && rule.session === key.session && rule.id === key.id;
}

const compare = (one: string, other: string) => (one < other ? -1 : Number(one > other));

/**
 * Stores a new rule, or the revocation of a rule. Otherwise it changes nothing.
 * @throws NatsUnavailableError, NatsRefusedError, NotPermittedError, StreamsMissingError.
 */
export async function keepRememberedRule(nc: NatsConnection, tenant: TenantId, stored: StoredRule): Promise<void> {
  const { rule, revoked } = stored;
  await replaceKey(nc, subjects.rememberedRule(tenant, rule), `the rule ${rule.id}`, (there) => {
    const known = there && valueIn(there.data, StoredRule);
    return known && (known.revoked || !revoked) ? undefined : { value: stored };
  });
}
