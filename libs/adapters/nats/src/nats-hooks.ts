/**
 * The hook port on NATS: asks hook services and tracks which of them are alive.
 *
 * HOOKS-1  A point without a registration costs nothing: only registered hooks are asked, with one request per handler.
 * HOOKS-2  The hooks of a dead service stay in the table, marked `unavailable`. They leave it only by a removal or a new
 *          announcement in the registry.
 */
import { createAsking, type NoteProblem } from '@coxswain/bus';
import type { Hooks, Log } from '@coxswain/ports';
import {
  BOUNDS,
  type HookAnnouncement,
  type HookRegistration,
  type HookTable,
  type TenantId,
} from '@coxswain/protocol';
import type { NatsConnection } from '@nats-io/nats-core';
import { createHookQuestions } from './served/hook-questions.ts';
import type { Announced } from './served/known-services.ts';
import { watchPresence } from './served/presence.ts';

/** Hooks that services on NATS serve. */
export interface NatsHooks extends Hooks {
  /** Unsubscribes. Open questions fail with `hook_unavailable`. */
  stop(): Promise<void>;
}

/**
 * The registrations of a tenant that a host reads, more than a table may have. A tenant can announce 200,000 and change
 * them all the time, which must not keep a host from the sessions of others.
 */
const REGISTRATIONS_READ_MAX = 4 * BOUNDS.hooksMax;

/** The maximum number of hooks that are remembered after their removal. The oldest are forgotten first. */
const FORMER_MAX = 65_536;

/**
 * Creates the hook port on this connection. Resolves when every registration is known.
 * @throws NatsUnavailableError, NatsRefusedError, StreamConfigMismatchError.
 */
export async function createNatsHooks(nc: NatsConnection, log: Log): Promise<NatsHooks> {
  const presence = await watchPresence(nc, 'hooks', log);
  const noteProblem: NoteProblem = (about, message) => log.info(about, message);
  const asking = createAsking(nc, presence, noteProblem);
  const questions = createHookQuestions(nc, asking, noteProblem);
  /**
   * The service that registered a hook last. A session may still ask a hook that its service no longer registers: the
   * instances answer it for a while.
   */
  const owners = new Map<string, string>();
  /** Notes the owners of the announced hooks. @returns the number of hooks. */
  const noteOwners = (services: readonly Announced<HookAnnouncement>[]) => {
    let announced = 0;
    for (const { of, registration } of registrationsOf(services)) {
      const hook = `${of.tenant}.${registration.id}`;
      // Moved to the end: only former hooks are forgotten.
      owners.delete(hook);
      owners.set(hook, of.name);
      announced++;
    }
    return announced;
  };
  const forgetFormer = () => {
    if (owners.size <= FORMER_MAX) return;
    const most = noteOwners(presence.list()) + FORMER_MAX;
    for (const [oldest] of owners) {
      if (owners.size <= most) break;
      owners.delete(oldest);
    }
  };
  noteOwners(presence.list());
  presence.onChange((tenant) => {
    noteOwners(presence.list(tenant));
    forgetFormer();
  });
  return {
    table(tenant) {
      const services = presence.list(tenant);
      // The calls of `onChange` are limited in rate: sessions must not see a hook without an owner.
      noteOwners(services);
      return tableOf(services);
    },
    onChange: (changed) => presence.onChange(changed),
    async ask(request, signal) {
      const { tenant } = request.ref;
      const name = owners.get(`${tenant}.${request.registration.id}`);
      if (name === undefined)
        return { status: 'failed', code: 'hook_unavailable', message: 'no service has registered it' };
      return questions.ask({ kind: 'hooks', tenant, name }, request, signal);
    },
    async stop() {
      asking.close();
      questions.stop();
      presence.stop();
    },
  };
}

/** The registrations of a tenant's services, the oldest service first. */
function tableOf(services: readonly Announced<HookAnnouncement>[]): HookTable {
  return registrationsOf(services).map(({ of, registration }) =>
    of.isServed ? registration : { ...registration, unavailable: true as const },
  );
}

/** The registrations of services, the oldest service first; of each tenant the first {@link REGISTRATIONS_READ_MAX}. */
function registrationsOf(services: readonly Announced<HookAnnouncement>[]): Registered[] {
  const oldestFirst = [...services].sort(({ announcement: { since: one } }, { announcement: { since: other } }) =>
    one < other ? -1 : one > other ? 1 : 0,
  );
  const left = new Map<TenantId, number>();
  return oldestFirst.flatMap((of) => {
    const most = left.get(of.tenant) ?? REGISTRATIONS_READ_MAX;
    const read = of.announcement.registrations.slice(0, most);
    left.set(of.tenant, most - read.length);
    return read.map((registration) => ({ of, registration }));
  });
}

interface Registered {
  readonly of: Announced<HookAnnouncement>;
  readonly registration: HookRegistration;
}
