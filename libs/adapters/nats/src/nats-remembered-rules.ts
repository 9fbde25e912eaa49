/**
 * What personas were made to remember: a key of the registry for each rule. One that is there is never written over but by
 * its revocation, and that by nothing: whoever puts a rule there once more, after a recovery, changes nothing.
 */
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
import { valueIn } from './read-keys.ts';
import { readRegistry, replaceKey } from './registry-keys.ts';
import { readTenantKeys } from './tenant-keys.ts';
import { isTenantsKey } from './wire.ts';

/** The port on this connection. */
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
 * The rules of a persona, or of all (`*`), revoked ones included: in the order in which they were made.
 * @throws NoHostAnswersError for a tenant's key, NatsUnavailableError, NatsRefusedError.
 */
export async function listRememberedRules(nc: NatsConnection, tenant: TenantId, persona = '*'): Promise<StoredRule[]> {
  const found = isTenantsKey(nc)
    ? await readTenantKeys(nc, tenant, STREAMS.registry, 'permissions')
    : await readRegistry(nc, subjects.rememberedRulesOf(tenant, persona));
  const rules: StoredRule[] = [];
  for (const { subject, data } of found) {
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
 * Keeps a rule that is not known, or that one is revoked.
 * @throws NatsUnavailableError, NatsRefusedError, NotPermittedError.
 */
export async function keepRememberedRule(nc: NatsConnection, tenant: TenantId, stored: StoredRule): Promise<void> {
  const { rule, revoked } = stored;
  await replaceKey(nc, subjects.rememberedRule(tenant, rule), `the rule ${rule.id}`, (there) => {
    const known = there && valueIn(there.data, StoredRule);
    return known && (known.revoked || !revoked) ? undefined : stored;
  });
}
