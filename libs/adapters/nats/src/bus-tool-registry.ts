/** Lists the announced bus tools with their instances, and removes announcements. */
import type { StoredMessage } from '@coxswain/bus';
import {
  Heartbeat,
  parseServedKey,
  STREAMS,
  subjects,
  type TenantId,
  ToolAnnouncement,
  toolDigest,
} from '@coxswain/protocol';
import type { NatsConnection } from '@nats-io/nats-core';
import { ensureBuckets } from './ensure-streams.ts';
import { valueIn } from './read-keys.ts';
import { isTakenBack, replaceKey } from './registry-keys.ts';
import { readTenantKeys } from './tenant-keys.ts';

/** An instance that serves a tool, as its heartbeat reports it. */
export interface ListedToolInstance {
  readonly instance: string;
  readonly state: 'serving' | 'draining' | 'standby';
  readonly since: string | null;
  /**
   * Digest of the announcement that it serves. Instances with another digest than the announced one also take calls.
   */
  readonly digest: string | null;
  /** Number of calls in progress. */
  readonly running: number | null;
}

/** An announced tool. */
export interface ListedTool {
  readonly name: string;
  readonly since: string;
  readonly digest: string;
  readonly announcement: ToolAnnouncement;
  readonly instances: readonly ListedToolInstance[];
}

/**
 * Lists the announced tools of a tenant, sorted by name.
 * @throws NoHostRespondsError, NatsUnavailableError, NatsRefusedError, NotPermittedError.
 */
export async function listBusTools(nc: NatsConnection, tenant: TenantId): Promise<ListedTool[]> {
  // The bucket of heartbeats is in memory: a restarted server has lost it.
  await ensureBuckets(nc, [STREAMS.registry, STREAMS.hosts]);
  const [announced, beats] = await Promise.all([
    readTenantKeys(nc, tenant, STREAMS.registry, 'tools'),
    readTenantKeys(nc, tenant, STREAMS.hosts, 'tools'),
  ]);
  const living = beats.flatMap(({ subject, data }) => instanceOf(subject, data) ?? []);
  return announced
    .flatMap((stored): ListedTool[] => {
      const announcement = announcementOf(stored);
      if (!announcement) return [];
      const { name, since } = announcement;
      const instances = living.filter(({ tool }) => tool === name).map(({ tool: _, ...instance }) => instance);
      return [{ name, since, digest: toolDigest(announcement), announcement, instances }];
    })
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}

/**
 * Removes the announcement of a tool.
 * @returns false if no tool of this name is announced.
 * @throws NatsUnavailableError, NatsRefusedError, NotPermittedError, StreamsMissingError.
 */
export async function removeBusTool(nc: NatsConnection, tenant: TenantId, name: string): Promise<boolean> {
  const subject = subjects.announcement('tools', tenant, name);
  return replaceKey(nc, subject, `the announcement of ${name}`, (stored) =>
    stored && !isTakenBack(stored) ? null : undefined,
  );
}

function announcementOf(stored: StoredMessage): ToolAnnouncement | null {
  const announcement = isTakenBack(stored) ? null : valueIn(stored.data, ToolAnnouncement);
  return announcement && announcement.name === parseServedKey(stored.subject)?.name ? announcement : null;
}

function instanceOf(subject: string, data: Uint8Array): (ListedToolInstance & { readonly tool: string }) | null {
  const key = parseServedKey(subject);
  const beat = valueIn(data, Heartbeat);
  if (key?.instance === undefined || !beat || beat.state === 'gone') return null;
  const { state, since = null, version: digest = null, running = null } = beat;
  return { tool: key.name, instance: key.instance, state, since, digest, running };
}
