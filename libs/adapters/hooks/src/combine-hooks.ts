/** Combines several sources of hooks into one. */
import type { HookReply, Hooks, Log } from '@coxswain/ports';
import {
  BOUNDS,
  type HookPoint,
  type HookRegistration,
  type HookTable,
  inCallOrder,
  type TenantId,
} from '@coxswain/protocol';

interface Combined {
  readonly table: HookTable;
  readonly owners: ReadonlyMap<string, Hooks>;
  /** The ignored registrations, the first ones. */
  readonly ignored: readonly { readonly hook: string; readonly point: HookPoint; readonly why: string }[];
  readonly ignoredCount: number;
  isReported: boolean;
}

/** The number of tenants whose tables are cached until the next change. */
const TABLES_KEPT_MAX = 256;

/** The log lines about one table: a tenant can register any number of hooks. */
const IGNORED_LOGGED_MAX = 8;
/** How many tables of a tenant are reported within this time: a tenant can change its hooks all the time. */
const REPORTS = { max: 4, withinMs: 60_000 } as const;

/**
 * Merges sources. The order of the table: hooks of personas first, then by priority, then manifest before code, then in
 * the order of the sources. A registration is ignored if its id is already registered at its point, or if the table is
 * full. Both are logged as errors, because the ignored hook will not run. The number of these lines is bounded.
 */
export function combineHooks(sources: readonly Hooks[], log: Log): Hooks {
  const known = new Map<TenantId, Combined>();
  /** The times of the last reports of each tenant. */
  const reports = new Map<TenantId, number[]>();
  const forget = (tenant?: TenantId) => {
    if (tenant === undefined) known.clear();
    else known.delete(tenant);
  };
  for (const source of sources) source.onChange?.(forget);

  function combined(tenant: TenantId): Combined {
    const before = known.get(tenant);
    const made = before ?? merge(sources, tenant);
    if (known.size >= TABLES_KEPT_MAX && !before) known.clear();
    known.set(tenant, made);
    report(tenant, made);
    return made;
  }

  /** Reports ignored hooks, now or when the table is read later. */
  function report(tenant: TenantId, made: Combined): void {
    if (made.isReported) return;
    const nowMs = performance.now();
    const recent = (reports.get(tenant) ?? []).filter((atMs) => nowMs - atMs < REPORTS.withinMs);
    if (recent.length >= REPORTS.max) return;
    made.isReported = true;
    if (reports.size >= TABLES_KEPT_MAX) reports.clear();
    reports.set(tenant, [...recent, nowMs]);
    for (const { hook, point, why } of made.ignored) log.error({ hook, point, tenant }, why);
    const others = made.ignoredCount - made.ignored.length;
    if (others > 0) log.error({ tenant }, `${others} more hooks are ignored for the same reasons`);
  }

  return {
    table: (tenant) => combined(tenant).table,
    onChange(changed) {
      const ends = sources.map((source) => source.onChange?.(changed));
      return () => {
        for (const end of ends) end?.();
      };
    },
    async ask(request, signal) {
      const owner = combined(request.ref.tenant).owners.get(nameOf(request.registration));
      const message = `no instance serves ${request.registration.id} any longer`;
      let reply: HookReply = { status: 'failed', code: 'hook_unavailable', message };
      // A source may still answer for a hook that it has just removed. One that cannot says so at once.
      for (const source of owner ? [owner] : sources) {
        reply = await source.ask(request, signal);
        if (reply.status !== 'failed' || reply.code !== 'hook_unavailable') break;
      }
      return reply;
    },
  };
}

function merge(sources: readonly Hooks[], tenant: TenantId): Combined {
  const ignored: Combined['ignored'][number][] = [];
  let ignoredCount = 0;
  const ignore = ({ id: hook, point }: HookRegistration, why: string) => {
    if (ignoredCount++ < IGNORED_LOGGED_MAX) ignored.push({ hook, point, why });
  };
  const owners = new Map<string, Hooks>();
  const all: HookRegistration[] = [];
  for (const source of sources) {
    for (const registration of source.table(tenant)) {
      const name = nameOf(registration);
      if (owners.has(name)) {
        ignore(registration, 'two sources have registered this hook: the later one is ignored');
        continue;
      }
      owners.set(name, source);
      all.push(registration);
    }
  }
  const table = inCallOrder(all);
  for (const registration of table.splice(BOUNDS.hooksMax))
    ignore(registration, `more than ${BOUNDS.hooksMax} hooks are registered: this one is ignored`);
  return { table, owners, ignored, ignoredCount, isReported: ignoredCount === 0 };
}

function nameOf({ id, point }: HookRegistration): string {
  return `${id} ${point}`;
}
