import { setTimeout } from 'node:timers/promises';
import { NatsUnavailableError, onConnectionChange, type StoredMessage } from '@coxswain/bus';
import type { Log } from '@coxswain/ports';
import {
  type BackOff,
  cutText,
  delayAfter,
  parseBusTool,
  type SessionRef,
  STREAMS,
  subjects,
  type TenantId,
  TOOL_LIVENESS,
  ToolAnnouncement,
  ToolBeat,
  type ToolDefinition,
} from '@coxswain/protocol';
import type { NatsConnection } from '@nats-io/nats-core';
import { ensureBuckets } from './ensure-streams.ts';
import { readKeys, valueIn } from './read-keys.ts';
import { isTakenBack, readRegistry } from './registry-keys.ts';
import { watchRegistry } from './watch-registry.ts';

/** The bus tools, and the live instances of each. */
export interface ToolPresence {
  /**
   * All tools that are announced for every session of a tenant, sorted by name. Includes tools without a live instance.
   */
  tools(tenant: TenantId): readonly ToolDefinition[];
  /** A tool that is announced for this session only. */
  toolFor(ref: SessionRef, name: string): ToolDefinition | undefined;
  /**
   * Reads the announcements of these tools that are not known yet, so that a session that starts now sees the newest
   * ones. While NATS is unavailable it retries until the signal aborts; after another error it stops. Never rejects.
   */
  learn(tenant: TenantId, names: readonly string[], signal: AbortSignal): Promise<void>;
  /** Whether an instance is known to take calls, or the tool was just announced. */
  isServed(tenant: TenantId, name: string): boolean;
  /** Live instances that take calls, newest heartbeat first. */
  serving(tenant: TenantId, name: string): readonly string[];
  /** All live instances, including draining ones: they may have calls. */
  living(tenant: TenantId, name: string): readonly string[];
  /**
   * Silent instances that have not announced that they leave, as long as they are remembered. They may be dead or
   * suspended.
   */
  silent(tenant: TenantId, name: string): readonly string[];
  /** Forgets an instance, because the server reports no subscriber for it. */
  forget(tenant: TenantId, name: string, instance: string): void;
  /** Milliseconds since the last heartbeat of an instance; Infinity for an unknown one. */
  silentMs(tenant: TenantId, name: string, instance: string): number;
  /** How long this connection has received heartbeats without interruption, milliseconds. */
  listenedMs(): number;
  stop(): void;
}

interface BusTool {
  revision: number;
  announcement: ToolAnnouncement | null;
  /**
   * When it was announced while this host listened, on the monotonic clock, milliseconds. An instance serves it then,
   * and its heartbeats follow.
   */
  announcedMs: number;
  readonly instances: Map<string, { heardMs: number; state: ToolBeat['state'] }>;
}

const INSTANCES_MAX = 1_024;
/** The delay before a failed read of the registry is repeated. */
const LEARN_AGAIN: BackOff = { firstMs: 250, maxMs: 5_000 };
/**
 * After this silence an instance may be forgotten, milliseconds. The server detects a dead connection within minutes.
 */
const REMEMBERED_MS = 600_000;

/**
 * Watches the tools that are announced and served on NATS. Resolves when every announcement is known.
 * @throws NatsUnavailableError, NatsRefusedError, StreamConfigMismatchError.
 */
export async function watchToolPresence(nc: NatsConnection, log: Log): Promise<ToolPresence> {
  await ensureBuckets(nc, [STREAMS.registry, STREAMS.hosts]);
  const tools = new Map<string, BusTool>();
  let listeningSinceMs = performance.now();
  const find = (tenant: string, name: string) => tools.get(`${tenant}.${name}`);
  const entryOf = (tenant: string, name: string): BusTool => {
    const known = find(tenant, name);
    if (known) return known;
    const fresh = { revision: 0, announcement: null, announcedMs: Number.NEGATIVE_INFINITY, instances: new Map() };
    tools.set(`${tenant}.${name}`, fresh);
    return fresh;
  };

  function take(stored: Pick<StoredMessage, 'subject' | 'seq' | 'data'>, removed: boolean, justNow: boolean): void {
    const key = parseBusTool(stored.subject);
    const announcement = removed ? null : announcementIn(stored.data, key?.name);
    if (!key || key.instance !== undefined || (!removed && !announcement)) {
      log.warn({ key: cutText(stored.subject, 256) }, 'the registry holds an invalid tool');
      return;
    }
    const tool = entryOf(key.tenant, key.name);
    if (tool.revision >= stored.seq) return;
    tool.revision = stored.seq;
    tool.announcement = announcement;
    if (justNow) tool.announcedMs = performance.now();
    log.info({ tenant: key.tenant, tool: key.name }, announcement ? 'a tool is announced' : 'a tool was removed');
  }

  function hear(subject: string, data: Uint8Array): void {
    const key = parseBusTool(subject);
    const state = beatIn(data);
    if (key?.instance === undefined || state === null) return;
    // Heartbeats for a tool that was never announced are ignored, so that they use no memory.
    const instances = find(key.tenant, key.name)?.instances;
    if (!instances) return;
    if (state === 'gone') {
      instances.delete(key.instance);
      return;
    }
    if (!instances.has(key.instance)) forgetSilent(instances, REMEMBERED_MS);
    if (instances.size >= INSTANCES_MAX && !instances.has(key.instance)) forgetSilent(instances, TOOL_LIVENESS.ttlMs);
    if (instances.size >= INSTANCES_MAX && !instances.has(key.instance)) return;
    instances.set(key.instance, { heardMs: performance.now(), state });
  }

  const heard = (tenant: string, name: string) => {
    const tool = find(tenant, name);
    if (!tool) return [];
    return [...tool.instances].filter(([, one]) => !isSilent(one));
  };

  const subscription = nc.subscribe(subjects.toolBeats, {
    callback: (error, message) => {
      if (!error) hear(message.subject, message.data);
    },
  });
  const endListening = onConnectionChange(nc, {
    restored() {
      listeningSinceMs = performance.now();
      for (const { instances } of tools.values())
        for (const instance of instances.values()) instance.heardMs = listeningSinceMs;
    },
  });
  for (const stored of await readRegistry(nc, subjects.toolAnnouncements)) take(stored, isTakenBack(stored), false);
  const watch = await watchRegistry(nc, 'tools.>', log);
  void (async () => {
    for await (const { key, revision, value, operation } of watch) {
      const subject = `$KV.${STREAMS.registry}.${key}`;
      take({ subject, seq: revision, data: value }, operation !== 'PUT', true);
    }
  })().catch((error: unknown) => log.error({ error }, 'the registry of tools is no longer watched'));
  for (const { subject, data } of (await readKeys(nc, STREAMS.hosts, subjects.toolBeats)).values()) hear(subject, data);

  return {
    tools: (tenant) =>
      [...tools]
        .flatMap(([key, { announcement }]) =>
          announcement && announcement.for_session === undefined && key === `${tenant}.${announcement.name}`
            ? [definitionOf(announcement)]
            : [],
        )
        .sort((a, b) => (a.name < b.name ? -1 : 1)),
    toolFor({ tenant, sessionId }, name) {
      const announcement = find(tenant, name)?.announcement;
      return announcement?.for_session === sessionId ? definitionOf(announcement) : undefined;
    },
    async learn(tenant, names, signal) {
      const isUnknown = (name: string) => !find(tenant, name)?.announcement;
      for (let failures = 1; !signal.aborted; failures++) {
        try {
          for (const name of names.filter(isUnknown)) {
            const keys = await readRegistry(nc, subjects.toolAnnouncement(tenant, name));
            for (const stored of keys) take(stored, isTakenBack(stored), true);
          }
          return;
        } catch (error) {
          log.warn({ tenant, error }, 'the tools that replace built-in ones cannot be looked up now');
          if (!(error instanceof NatsUnavailableError) || nc.isClosed()) return;
        }
        await setTimeout(delayAfter(failures, LEARN_AGAIN), undefined, { signal, ref: false }).catch(() => undefined);
      }
    },
    isServed(tenant, name) {
      const tool = find(tenant, name);
      if (!tool?.announcement) return false;
      const announced = performance.now() - tool.announcedMs < TOOL_LIVENESS.ttlMs;
      return announced || heard(tenant, name).some(([, { state }]) => state === 'serving');
    },
    serving: (tenant, name) => servingIn(heard(tenant, name)),
    living: (tenant, name) => heard(tenant, name).map(([instance]) => instance),
    silent: (tenant, name) =>
      [...(find(tenant, name)?.instances ?? [])].flatMap(([instance, one]) => (isSilent(one) ? [instance] : [])),
    forget(tenant, name, instance) {
      find(tenant, name)?.instances.delete(instance);
    },
    silentMs(tenant, name, instance) {
      const known = find(tenant, name)?.instances.get(instance);
      return known ? performance.now() - known.heardMs : Number.POSITIVE_INFINITY;
    },
    listenedMs: () => performance.now() - listeningSinceMs,
    stop() {
      endListening();
      watch.stop();
      subscription.unsubscribe();
    },
  };
}

const isSilent = ({ heardMs }: { readonly heardMs: number }) => performance.now() - heardMs >= TOOL_LIVENESS.ttlMs;

/** The instances among live ones that take calls, newest heartbeat first. */
export function servingIn(
  living: readonly (readonly [instance: string, { readonly heardMs: number; readonly state: ToolBeat['state'] }])[],
): readonly string[] {
  return living
    .filter(([, { state }]) => state === 'serving')
    .sort(([, one], [, other]) => other.heardMs - one.heardMs)
    .map(([instance]) => instance);
}

function forgetSilent(instances: BusTool['instances'], forMs: number): void {
  const oldest = performance.now() - forMs;
  for (const [instance, { heardMs }] of instances) if (heardMs < oldest) instances.delete(instance);
}

function definitionOf({ name, description, input_schema, traits, needs_approval }: ToolAnnouncement): ToolDefinition {
  return { name, description, input_schema, source: 'bus', traits, ...(needs_approval ? { needs_approval } : {}) };
}

function announcementIn(data: Uint8Array, name: string | undefined): ToolAnnouncement | null {
  const announcement = valueIn(data, ToolAnnouncement);
  return announcement?.name === name ? announcement : null;
}

function beatIn(data: Uint8Array): ToolBeat['state'] | null {
  return valueIn(data, ToolBeat)?.state ?? null;
}
