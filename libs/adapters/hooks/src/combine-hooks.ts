/** Combines several sources of hooks into one. */
import type { HookReply, Hooks, Log } from '@coxswain/ports';
import { BOUNDS, type HookRegistration, type HookTable, inCallOrder, type TenantId } from '@coxswain/protocol';

interface Combined {
  readonly table: HookTable;
  readonly owners: ReadonlyMap<string, Hooks>;
}

/** The number of tenants whose tables are cached until the next change. */
const TABLES_KEPT_MAX = 256;

/**
 * Merges sources. The order of the table: hooks of personas first, then by priority, then manifest before code, then in
 * the order of the sources. A registration is ignored if its id is already registered at its point, or if the table is
 * full. Both are logged as errors, because the ignored hook will not run.
 */
export function combineHooks(sources: readonly Hooks[], log: Log): Hooks {
  const known = new Map<TenantId, Combined>();
  const forget = (tenant?: TenantId) => {
    if (tenant === undefined) known.clear();
    else known.delete(tenant);
  };
  for (const source of sources) source.onChange?.(forget);

  function combined(tenant: TenantId): Combined {
    const before = known.get(tenant);
    if (before) return before;
    const made = merge(sources, tenant, log);
    if (known.size >= TABLES_KEPT_MAX) known.clear();
    known.set(tenant, made);
    return made;
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

function merge(sources: readonly Hooks[], tenant: TenantId, log: Log): Combined {
  const owners = new Map<string, Hooks>();
  const all: HookRegistration[] = [];
  for (const source of sources) {
    for (const registration of source.table(tenant)) {
      const name = nameOf(registration);
      const { id: hook, point } = registration;
      if (owners.has(name)) {
        log.error({ hook, point, tenant }, 'two sources have registered this hook: the later one is ignored');
        continue;
      }
      owners.set(name, source);
      all.push(registration);
    }
  }
  const table = inCallOrder(all);
  for (const { id: hook, point } of table.splice(BOUNDS.hooksMax)) {
    log.error({ hook, point, tenant }, `more than ${BOUNDS.hooksMax} hooks are registered: this one is ignored`);
  }
  return { table, owners };
}

function nameOf({ id, point }: HookRegistration): string {
  return `${id} ${point}`;
}
