/**
 * The paused personas that a host knows. Pauses are untrusted as announcements are (KNOWN-1, KNOWN-3 and KNOWN-4 in
 * known-services.ts): their number per tenant is bounded, and so is the rate of log lines and wakes. A persona that is
 * not paused takes no memory.
 */
import { type Rate, RateLimit, valueIn } from '@coxswain/bus';
import type { Log } from '@coxswain/ports';
import { PersonaPause, parseServedKey, SERVED_BOUNDS, type TenantId } from '@coxswain/protocol';
import { LOG_RATE, WAKE_RATE } from './known-services.ts';

const WARN_RATE: Rate = { burst: 1, everyMs: 3_600_000 };

/** The paused personas: none of their steps starts. */
export interface KnownPauses {
  /** The pause of a persona; null if it is not paused. */
  find(tenant: TenantId, name: string): PersonaPause | null;
  /** Calls back when a persona is paused or resumed: after a burst of changes, ten times a second at most. */
  onChange(changed: (tenant: TenantId) => void): () => void;
  /** Takes a key of the registry. */
  take(stored: { readonly subject: string; readonly seq: number; readonly data: Uint8Array }, isRemoved: boolean): void;
  /** Drops the log lines and calls that are due later. */
  stop(): void;
}

interface Tenant {
  readonly paused: Map<string, { readonly revision: number; readonly pause: PersonaPause }>;
  /** The persona of the newest change: changes above the rate share one log line. */
  changed: string;
  readonly log: RateLimit;
  readonly wake: RateLimit;
  readonly warnFull: RateLimit;
}

/** Creates the empty list. */
export function createKnownPauses(log: Log): KnownPauses {
  const tenants = new Map<TenantId, Tenant>();
  const listeners = new Set<(tenant: TenantId) => void>();
  const max = SERVED_BOUNDS.namesPerTenantMax;

  function createTenant(tenant: TenantId): Tenant {
    const created: Tenant = {
      paused: new Map(),
      changed: '',
      log: new RateLimit(() => {
        const { changed, paused } = created;
        const isPaused = paused.has(changed);
        log.info({ tenant, persona: changed }, isPaused ? 'a persona is paused' : 'a persona is resumed');
      }, LOG_RATE),
      wake: new RateLimit(() => {
        for (const listener of [...listeners]) listener(tenant);
      }, WAKE_RATE),
      warnFull: new RateLimit(
        () => log.warn({ tenant }, `more than ${max} personas were paused: further pauses are ignored`),
        WARN_RATE,
      ),
    };
    tenants.set(tenant, created);
    return created;
  }

  return {
    find: (tenant, name) => tenants.get(tenant)?.paused.get(name)?.pause ?? null,
    onChange(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    take({ subject, seq, data }, isRemoved) {
      const key = parseServedKey(subject);
      if (key?.kind !== 'paused-personas') return;
      const { name } = key;
      const pause = isRemoved ? null : valueIn(data, PersonaPause);
      const tenant = tenants.get(key.tenant) ?? (pause && createTenant(key.tenant));
      const known = tenant?.paused.get(name);
      if (!tenant || (known?.revision ?? 0) >= seq || (!known && !pause)) return;
      if (!known && tenant.paused.size >= max) return tenant.warnFull.request();
      if (pause) tenant.paused.set(name, { revision: seq, pause });
      else tenant.paused.delete(name);
      tenant.changed = name;
      tenant.log.request();
      tenant.wake.request();
    },
    stop() {
      for (const limits of tenants.values())
        for (const limit of [limits.log, limits.wake, limits.warnFull]) limit.stop();
    },
  };
}
