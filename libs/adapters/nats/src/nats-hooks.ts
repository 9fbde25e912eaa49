/**
 * The hook port on NATS: asks hook services and tracks which of them are alive.
 *
 * HOOKS-1  A point without a registration costs nothing: only registered hooks are asked, with one request per handler.
 * HOOKS-2  The hooks of a dead service stay in the table, marked `unavailable`. They leave it only by a removal or a new
 *          announcement in the registry.
 */
import { createAsking, type NoteProblem } from '@coxswain/bus';
import type { Hooks, Log } from '@coxswain/ports';
import type { HookAnnouncement, HookTable } from '@coxswain/protocol';
import type { NatsConnection } from '@nats-io/nats-core';
import { createHookQuestions } from './served/hook-questions.ts';
import type { Announced } from './served/known-services.ts';
import { watchPresence } from './served/presence.ts';

/** Hooks that services on NATS serve. */
export interface NatsHooks extends Hooks {
  /** Unsubscribes. Open questions fail with `hook_unavailable`. */
  stop(): Promise<void>;
}

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
    for (const { tenant, name, announcement } of services)
      for (const { id } of announcement.registrations) {
        // Moved to the end: only former hooks are forgotten.
        owners.delete(`${tenant}.${id}`);
        owners.set(`${tenant}.${id}`, name);
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
  return [...services]
    .sort(({ announcement: { since: one } }, { announcement: { since: other } }) =>
      one < other ? -1 : one > other ? 1 : 0,
    )
    .flatMap(({ announcement, isServed }) =>
      announcement.registrations.map((registration) =>
        isServed ? registration : { ...registration, unavailable: true as const },
      ),
    );
}
