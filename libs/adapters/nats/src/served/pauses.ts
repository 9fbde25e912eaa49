import type { Log } from '@coxswain/ports';
import { PersonaPause, parseServedKey, STREAMS, subjects, type TenantId } from '@coxswain/protocol';
import type { NatsConnection } from '@nats-io/nats-core';
import { valueIn } from '../read-keys.ts';
import { isTakenBack, readRegistry } from '../registry-keys.ts';
import { watchRegistry } from '../watch-registry.ts';

/** The paused personas: none of their steps starts. */
export interface Pauses {
  /** The pause of a persona; null if it is not paused. */
  find(tenant: TenantId, name: string): PersonaPause | null;
  /** Calls back when a persona is paused or resumed. */
  onChange(changed: () => void): () => void;
  stop(): void;
}

/**
 * Watches the pauses in the registry. Resolves when every pause is known.
 * @throws NatsUnavailableError, NatsRefusedError.
 */
export async function watchPauses(nc: NatsConnection, log: Log): Promise<Pauses> {
  const pauses = new Map<string, { readonly revision: number; readonly pause: PersonaPause | null }>();
  const listeners = new Set<() => void>();

  function take(subject: string, revision: number, data: Uint8Array, isRemoved: boolean): void {
    const key = parseServedKey(subject);
    if (key?.kind !== 'paused-personas') return;
    const { tenant, name } = key;
    const id = `${tenant}.${name}`;
    if ((pauses.get(id)?.revision ?? 0) >= revision) return;
    const pause = isRemoved ? null : valueIn(data, PersonaPause);
    pauses.set(id, { revision, pause });
    log.info({ tenant, persona: name }, pause ? 'a persona is paused' : 'a persona is resumed');
    for (const listener of [...listeners]) listener();
  }

  for (const stored of await readRegistry(nc, subjects.personaPauses))
    take(stored.subject, stored.seq, stored.data, isTakenBack(stored));
  const watch = await watchRegistry(nc, 'paused-personas.>', log);
  void (async () => {
    for await (const { key, revision, value, operation } of watch)
      take(`$KV.${STREAMS.registry}.${key}`, revision, value, operation !== 'PUT');
  })().catch((error: unknown) => log.error({ error }, 'the registry of pauses is no longer watched'));

  return {
    find: (tenant, name) => pauses.get(`${tenant}.${name}`)?.pause ?? null,
    onChange(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    stop: () => watch.stop(),
  };
}
