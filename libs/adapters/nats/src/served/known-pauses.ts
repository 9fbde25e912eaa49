/**
 * The paused personas that a host knows. Pauses are untrusted as announcements are (KNOWN-1, KNOWN-3 and KNOWN-4 in
 * known-services.ts): their number per tenant is bounded, and so is the rate of log lines and wakes. Resumed personas are
 * kept for a minute within the same bound: a replica that lags may still deliver an older pause. Other personas take no
 * memory.
 */
import { type Rate, RateLimit, valueIn } from '@coxswain/bus';
import type { Log } from '@coxswain/ports';
import { PersonaPause, parseServedKey, SERVED_BOUNDS, type TenantId } from '@coxswain/protocol';
import { LOG_RATE, REMOVED_KEPT_MS, WAKE_RATE } from './known-services.ts';

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
  /** The resumed personas, in the order in which the host learned it. Monotonic clock, milliseconds. */
  readonly resumed: Map<string, { readonly revision: number; readonly resumedMs: number }>;
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
      resumed: new Map(),
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

  /** Forgets personas that were resumed a minute ago, and the first ones where paused and resumed exceed the bound. */
  function forgetResumed({ paused, resumed }: Tenant): void {
    const oldestMs = performance.now() - REMOVED_KEPT_MS;
    for (const [name, { resumedMs }] of resumed) {
      if (resumedMs >= oldestMs && paused.size + resumed.size <= max) return;
      resumed.delete(name);
    }
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
      const tenant = tenants.get(key.tenant) ?? createTenant(key.tenant);
      const { paused, resumed } = tenant;
      const wasPaused = paused.has(name);
      const known = paused.get(name) ?? resumed.get(name);
      if ((known?.revision ?? 0) >= seq) return;
      if (pause && !wasPaused && paused.size >= max) return tenant.warnFull.request();
      paused.delete(name);
      resumed.delete(name);
      if (pause) paused.set(name, { revision: seq, pause });
      else resumed.set(name, { revision: seq, resumedMs: performance.now() });
      forgetResumed(tenant);
      if (!pause && !wasPaused) return;
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
