import { onConnectionChange } from '@coxswain/bus';
import type { Log } from '@coxswain/ports';
import {
  cutText,
  PersonaAnnouncement,
  PersonaBeat,
  PersonaPause,
  parseServedPersona,
  STREAMS,
  subjects,
  type TenantId,
  TOOL_LIVENESS,
} from '@coxswain/protocol';
import type { NatsConnection } from '@nats-io/nats-core';
import { ensureBuckets } from './ensure-streams.ts';
import type { CallPresence } from './nats-tool-calls.ts';
import { servingIn } from './nats-tool-presence.ts';
import { readKeys, valueIn } from './read-keys.ts';
import { isTakenBack, readRegistry } from './registry-keys.ts';
import { watchRegistry } from './watch-registry.ts';

/**
 * The announced personas, the paused ones, and the live instances of each version. Calls address a version of a
 * persona: {@link servedAs} builds the address.
 */
export interface PersonaPresence extends CallPresence {
  announcement(tenant: TenantId, name: string): PersonaAnnouncement | null;
  names(tenant: TenantId): readonly string[];
  pause(tenant: TenantId, name: string): PersonaPause | null;
  onChange(changed: () => void): () => void;
  stop(): void;
}

interface Instance {
  heardMs: number;
  state: PersonaBeat['state'];
  version: string;
}

interface Known {
  announcement: PersonaAnnouncement | null;
  announcedRevision: number;
  /**
   * When it was announced while this host listened, on the monotonic clock, milliseconds. An instance serves it then,
   * and its heartbeats follow.
   */
  announcedMs: number;
  pause: PersonaPause | null;
  pausedRevision: number;
  readonly instances: Map<string, Instance>;
}

const INSTANCES_MAX = 1_024;
/** Separates name and version. A persona's name contains no slash. */
const BETWEEN = '/';

/** The address of a persona version in calls: `name/version`. */
export function servedAs(name: string, version: string): string {
  return name + BETWEEN + version;
}

/** Splits an address of {@link servedAs}. */
export function nameAndVersion(served: string): readonly [name: string, version: string] {
  const at = served.indexOf(BETWEEN);
  return [served.slice(0, at), served.slice(at + 1)];
}

/**
 * Watches the personas that are announced and served on NATS. Resolves when every announcement and pause is known.
 * @throws NatsUnavailableError, NatsRefusedError, StreamConfigMismatchError.
 */
export async function watchPersonaPresence(nc: NatsConnection, log: Log): Promise<PersonaPresence> {
  await ensureBuckets(nc, [STREAMS.registry, STREAMS.hosts]);
  const personas = new Map<string, Known>();
  const listeners = new Set<() => void>();
  let listeningSinceMs = performance.now();
  const find = (tenant: string, name: string) => personas.get(`${tenant}.${name}`);
  const entryOf = (tenant: string, name: string): Known => {
    const known = find(tenant, name);
    if (known) return known;
    const fresh: Known = {
      announcement: null,
      announcedRevision: 0,
      announcedMs: Number.NEGATIVE_INFINITY,
      pause: null,
      pausedRevision: 0,
      instances: new Map(),
    };
    personas.set(`${tenant}.${name}`, fresh);
    return fresh;
  };
  const changed = () => {
    for (const listener of [...listeners]) listener();
  };

  function take(subject: string, revision: number, data: Uint8Array, removed: boolean, justNow: boolean): void {
    const key = parseServedPersona(subject);
    if (!key || key.instance !== undefined) return;
    const known = entryOf(key.tenant, key.name);
    if (subject === subjects.personaPause(key.tenant, key.name)) {
      if (known.pausedRevision >= revision) return;
      known.pausedRevision = revision;
      known.pause = removed ? null : valueIn(data, PersonaPause);
      log.info({ tenant: key.tenant, persona: key.name }, known.pause ? 'a persona is paused' : 'a persona is resumed');
    } else {
      const announcement = removed ? null : valueIn(data, PersonaAnnouncement);
      if (known.announcedRevision >= revision) return;
      if (!removed && announcement?.name !== key.name) {
        log.warn({ key: cutText(subject, 256) }, 'the registry holds an invalid persona');
        return;
      }
      known.announcedRevision = revision;
      known.announcement = announcement;
      if (justNow && announcement) known.announcedMs = performance.now();
      const said = announcement ? 'a persona is announced' : 'a persona was removed';
      log.info({ tenant: key.tenant, persona: key.name, version: announcement?.version }, said);
    }
    changed();
  }

  function hear(subject: string, data: Uint8Array): void {
    const key = parseServedPersona(subject);
    const beat = valueIn(data, PersonaBeat);
    // Heartbeats for a persona that was never announced are ignored, so that they use no memory.
    const persona = key && find(key.tenant, key.name);
    if (key?.instance === undefined || !persona || !beat) return;
    const { instances } = persona;
    if (beat.state === 'gone') {
      instances.delete(key.instance);
      persona.announcedMs = Number.NEGATIVE_INFINITY;
      return;
    }
    const known = instances.get(key.instance);
    if (!known && instances.size >= INSTANCES_MAX) forgetSilent(instances);
    if (!known && instances.size >= INSTANCES_MAX) return;
    const serves = known?.state === 'serving' && !isSilent(known);
    instances.set(key.instance, { heardMs: performance.now(), state: beat.state, version: beat.version });
    if (!serves && beat.state === 'serving') changed();
  }

  const instancesOf = (tenant: string, served: string) => {
    const [name, version] = nameAndVersion(served);
    return [...(find(tenant, name)?.instances ?? [])].filter(([, one]) => one.version === version);
  };

  const subscription = nc.subscribe(subjects.personaBeats, {
    callback: (error, message) => {
      if (!error) hear(message.subject, message.data);
    },
  });
  const endListening = onConnectionChange(nc, {
    restored() {
      listeningSinceMs = performance.now();
      for (const { instances } of personas.values())
        for (const instance of instances.values()) instance.heardMs = listeningSinceMs;
    },
  });
  for (const keys of [subjects.personaAnnouncements, subjects.personaPauses])
    for (const stored of await readRegistry(nc, keys))
      take(stored.subject, stored.seq, stored.data, isTakenBack(stored), false);
  const watches = await Promise.all(['personas.>', 'paused-personas.>'].map((key) => watchRegistry(nc, key, log)));
  for (const watch of watches)
    void (async () => {
      for await (const { key, revision, value, operation } of watch)
        take(`$KV.${STREAMS.registry}.${key}`, revision, value, operation !== 'PUT', true);
    })().catch((error: unknown) => log.error({ error }, 'the registry of personas is no longer watched'));
  for (const { subject, data } of (await readKeys(nc, STREAMS.hosts, subjects.personaBeats)).values())
    hear(subject, data);

  return {
    announcement: (tenant, name) => find(tenant, name)?.announcement ?? null,
    names: (tenant) =>
      [...personas.values()]
        .flatMap(({ announcement }) =>
          announcement && find(tenant, announcement.name)?.announcement === announcement ? [announcement.name] : [],
        )
        .sort(),
    pause: (tenant, name) => find(tenant, name)?.pause ?? null,
    onChange(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    isServed(tenant, served) {
      const [name, version] = nameAndVersion(served);
      const known = find(tenant, name);
      if (known?.announcement?.version === version && performance.now() - known.announcedMs < TOOL_LIVENESS.ttlMs)
        return true;
      return instancesOf(tenant, served).some(([, one]) => one.state === 'serving' && !isSilent(one));
    },
    serving: (tenant, served) => servingIn(instancesOf(tenant, served).filter(([, one]) => !isSilent(one))),
    living: (tenant, served) => instancesOf(tenant, served).flatMap(([id, one]) => (isSilent(one) ? [] : [id])),
    silent: (tenant, served) => instancesOf(tenant, served).flatMap(([id, one]) => (isSilent(one) ? [id] : [])),
    forget(tenant, served, instance) {
      find(tenant, nameAndVersion(served)[0])?.instances.delete(instance);
    },
    silentMs(tenant, served, instance) {
      const known = find(tenant, nameAndVersion(served)[0])?.instances.get(instance);
      return known ? performance.now() - known.heardMs : Number.POSITIVE_INFINITY;
    },
    listenedMs: () => performance.now() - listeningSinceMs,
    stop() {
      endListening();
      for (const watch of watches) watch.stop();
      subscription.unsubscribe();
    },
  };
}

const isSilent = ({ heardMs }: { readonly heardMs: number }) => performance.now() - heardMs >= TOOL_LIVENESS.ttlMs;

function forgetSilent(instances: Map<string, Instance>): void {
  for (const [instance, one] of instances) if (isSilent(one)) instances.delete(instance);
}
