/** Announces a tool: writes what it is under its key of the registry, once, under a fence. */
import { canonicalJson, STREAMS, subjects, type TenantId, ToolAnnouncement, toolDigest } from '@coxswain/protocol';
import { JetStreamApiCodes, JetStreamApiError, jetstreamManager } from '@nats-io/jetstream';
import { BusNotPreparedError, ClientError } from './client-errors.ts';
import type { CheckedTool } from './define-tool.ts';
import { type CommandBus, streamIsMissing } from './send-command.ts';

const WRITES_MAX = 16;
/** A follower of a cluster may lag behind what was written a moment ago. */
const READ_AGAIN_MS = 50;
const REGISTRY = `KV_${STREAMS.registry}`;

/** One key of the registry. */
export interface Announced<T> {
  readonly name: string;
  readonly subject: string;
  readonly schema: { safeParse(value: unknown): { readonly data?: T | undefined } };
  /** What is announced, as of the time when it was first: that is taken over from an announcement that stands there. */
  value(since: string): T;
  /** Why what stands there may not be replaced by this; null or left out where it may. */
  conflict?(before: T): Error | null;
}

/**
 * Says what a tool is, unless it stands there already: many instances start with the same. Of several versions the one that is
 * announced last counts.
 * @param when `where_missing`: leaves what stands there. After a lost connection versions would take turns otherwise.
 * @returns the digest of another version that stood there, or null.
 * @throws BusNotPreparedError where no host has ever run on the bus, ClientError, and what the bus throws.
 */
export async function announceTool(
  bus: CommandBus,
  tenant: TenantId,
  { announced }: CheckedTool,
  when: 'always' | 'where_missing' = 'always',
): Promise<string | null> {
  const { name } = announced;
  const subject = subjects.toolAnnouncement(tenant, name);
  const value = (since: string): ToolAnnouncement => ({ v: 1, since, ...announced });
  const before = await announce(bus, { name, subject, schema: ToolAnnouncement, value }, when);
  return before && toolDigest(before);
}

/**
 * Writes an announcement, under a fence.
 * @returns what stood there and was another one, or null.
 * @throws as {@link announceTool}, and the conflict with what stands there.
 */
export async function announce<T extends { readonly since: string }>(
  bus: CommandBus,
  { name, subject, schema, value, conflict }: Announced<T>,
  when: 'always' | 'where_missing',
): Promise<T | null> {
  if (await streamIsMissing(bus, REGISTRY)) throw new BusNotPreparedError();
  const manager = await jetstreamManager(bus.nc, { checkAPI: false });
  for (let write = 0; write < WRITES_MAX; write++) {
    // Its own key alone, by a subject that permissions can name.
    const stored = await manager.direct.getMessage(REGISTRY, { last_by_subj: subject });
    const before = stored && stored.header.get('KV-Operation') === '' ? announcementIn(stored.data, schema) : null;
    const problem = before && conflict?.(before);
    if (problem) throw problem;
    const text = canonicalJson(value(before?.since ?? new Date().toISOString()));
    if (before && (when === 'where_missing' || canonicalJson(before) === text)) return null;
    if (await written(bus, subject, text, stored?.seq ?? 0)) return before;
    await new Promise((resolve) => setTimeout(resolve, READ_AGAIN_MS * write));
  }
  throw new ClientError('tool_not_announced', `the announcement of ${name} was overtaken ${WRITES_MAX} times`);
}

async function written(bus: CommandBus, subject: string, text: string, revision: number): Promise<boolean> {
  try {
    await bus.js.publish(subject, text, { expect: { lastSubjectSequence: revision } });
    return true;
  } catch (error) {
    if (error instanceof JetStreamApiError && error.code === JetStreamApiCodes.StreamWrongLastSequence) return false;
    throw error;
  }
}

function announcementIn<T>(value: Uint8Array, schema: Announced<T>['schema']): T | null {
  try {
    return schema.safeParse(JSON.parse(new TextDecoder().decode(value))).data ?? null;
  } catch {
    // No JSON: somebody else's value, which is replaced.
    return null;
  }
}
