/**
 * Measures the stored data of tenants. The server counts messages by subject, but bytes only by stream. So the bytes of
 * a tenant are its share of the messages of each journal stream: exact for a single tenant, an estimate for several.
 */
import { askJetStream, wireOf } from '@coxswain/bus';
import type { Log, MeasuredUsage, TenantUsage } from '@coxswain/ports';
import { JOURNAL_STREAMS, subjects, type TenantId } from '@coxswain/protocol';
import type { NatsConnection } from '@nats-io/nats-core';

/** Interval of the measurements, milliseconds. */
const EVERY_MS = 30_000;
/** A tenant whose usage was not read for this time is no longer measured, milliseconds. */
const UNUSED_ENTRY_MS = 10 * 60_000;
/** Maximum number of measured tenants. The usage of further tenants is unknown. */
const TENANTS_MAX = 1_024;

interface StreamUsage {
  readonly total?: number;
  readonly state?: {
    readonly messages?: number;
    readonly bytes?: number;
    readonly subjects?: Readonly<Record<string, number>>;
  };
}

/**
 * Creates the usage port. It measures each tenant whose usage is read, until it is closed.
 * @param everyMs interval of the measurements, milliseconds.
 */
export function createNatsTenantUsage(
  nc: NatsConnection,
  log: Log,
  everyMs = EVERY_MS,
): TenantUsage & { close(): void } {
  const known = new Map<TenantId, { usage: MeasuredUsage | null; requestedAtMs: number }>();
  let isMeasuring = false;

  async function measureAll(): Promise<void> {
    if (isMeasuring) return;
    isMeasuring = true;
    try {
      for (const [tenant, entry] of known) {
        if (performance.now() - entry.requestedAtMs > UNUSED_ENTRY_MS) known.delete(tenant);
        else entry.usage = await measureTenant(nc, tenant);
      }
    } catch (error) {
      // Keep the last measurements until the store answers again.
      log.warn({ error: (error as Error).message }, 'the usage of tenants could not be measured');
    } finally {
      isMeasuring = false;
    }
  }

  let timer: NodeJS.Timeout | null = null;
  return {
    of(tenant) {
      const entry = known.get(tenant);
      if (entry) {
        entry.requestedAtMs = performance.now();
        return entry.usage;
      }
      if (known.size < TENANTS_MAX) {
        known.set(tenant, { usage: null, requestedAtMs: performance.now() });
        timer ??= setInterval(() => void measureAll(), everyMs).unref();
        void measureAll();
      }
      return null;
    },
    close: () => clearInterval(timer ?? undefined),
  };
}

/** Measures one tenant. @throws NatsUnavailableError, NatsRefusedError. */
async function measureTenant(nc: NatsConnection, tenant: TenantId): Promise<MeasuredUsage> {
  const wire = wireOf(nc);
  let sessions = 0;
  let storedBytes = 0;
  for (const stream of JOURNAL_STREAMS) {
    let own = 0;
    let state: StreamUsage['state'];
    for (let offset = 0, total = 1; offset < total; ) {
      const query = { subjects_filter: subjects.tenantJournals(tenant), offset };
      const answer = await askJetStream<StreamUsage>(wire, `measuring ${stream}`, `STREAM.INFO.${stream}`, query);
      state = answer.state;
      const counts = Object.values(state?.subjects ?? {});
      if (counts.length === 0) break;
      // A deleted session has one record, its tombstone. Any other session gets a second record right after its first.
      sessions += counts.filter((count) => count > 1).length;
      own += counts.reduce((sum, count) => sum + count, 0);
      offset += counts.length;
      total = answer.total ?? 0;
    }
    const { messages = 0, bytes = 0 } = state ?? {};
    if (messages > 0) storedBytes += Math.round((bytes * own) / messages);
  }
  return { sessions, storedBytes };
}
