import {
  type Announcement,
  announce,
  readAnnouncement,
  removeAnnouncement,
  type StoredAnnouncement,
  type When,
} from '@coxswain/bus';
import { SERVED_LIVENESS, type TenantId, ToolAnnouncement, toolDigest } from '@coxswain/protocol';
import type { CheckedTool } from './define-tool.ts';
import type { OtherInstances } from './other-instances.ts';
import type { CommandBus } from './send-command.ts';

/**
 * Selects the announced version of a tool, if instances of several versions serve it.
 *
 * N1  A new version is announced when an instance of it starts, and replaces the announced one.
 * N2  A replaced version is not announced again by a start or a reconnect while an instance serves the announced one.
 *     An old instance that restarts during a rollout must not undo it.
 * N3  A version without instances does not stay announced while an instance serves another version. That instance
 *     announces its own with optimistic concurrency, so that one of several succeeds.
 * N4  An instance that cannot receive heartbeats concludes nothing about the others.
 */
export interface ToolVersions {
  /** Announces the version of a starting instance (N1, N2). @throws as `announce`. */
  announceFirst(): Promise<void>;
  /** Announces another version, whatever is announced. @throws as `announce`. */
  announceNext(tool: CheckedTool): Promise<void>;
  /** Announces the version if none is announced. @throws as `announce`. */
  announceWhereMissing(): Promise<void>;
  /** Removes the announcement, if no other instance of the tool is known. @throws errors of NATS. */
  withdraw(): Promise<void>;
  /** Starts to apply N3. */
  start(): void;
  stop(): void;
}

/** An instance and its version. */
export interface OwnVersion {
  readonly name: string;
  tool(): CheckedTool;
  /** Called with messages for the operator. */
  readonly problem: (message: string) => void;
}

/** The interval of the checks. They read the registry after a change, and while an announcement has no instances. */
const LOOKED_EVERY_MS = 1_000;
/** The maximum number of replaced versions that an announcement lists, the newest ones. */
const REPLACED_MAX = 16;
const REPLACED_HEADER = 'Cox-Replaced';
const NONE = '';

/** Starts to compare the version with those of the tool's other instances. */
export function watchToolVersions(
  bus: CommandBus,
  tenant: TenantId,
  own: OwnVersion,
  others: OtherInstances,
): ToolVersions {
  const { name, problem } = own;
  let listeningSinceMs = performance.now();
  let timer: NodeJS.Timeout | undefined;
  let wake: () => void = () => undefined;
  /** The number of changes in heartbeats: an instance may start, announce a version and stop between two checks. */
  let changes = 0;
  /** The instances when the registry was read last, and the announced digest. */
  let seen: { readonly served: string; readonly announced: string } | null = null;
  /** An announcement without instances, and the time when it was found. */
  let unserved: { readonly revision: number; readonly sinceMs: number } | null = null;

  const endListening = others.onHeartbeat((before, now) => {
    if (before?.version !== now?.version || before?.state !== now?.state) changes += 1;
    wake();
  });

  const ownDigest = () => toolDigest(own.tool().announced);

  /** The versions that have instances, including this one. */
  function served(): Set<string> {
    const serving = [...others.live().values()].filter(({ state }) => state === 'serving');
    return new Set([ownDigest(), ...serving.flatMap(({ version = [] }) => version)]);
  }

  const at = { kind: 'tools', tenant, name } as const;
  const announcementOf = (tool: CheckedTool): Announcement<ToolAnnouncement> => ({
    at,
    schema: ToolAnnouncement,
    value: (since) => ({ v: 1, since, ...tool.announced }),
    headers: (before, when) => {
      // A version without instances was not replaced: it counts as new when it starts again.
      const former = before.value && typeof when !== 'object' ? [toolDigest(before.value)] : [];
      return noteOf([...replacedIn(before.headers), ...former].filter((one) => one !== toolDigest(tool.announced)));
    },
  });

  async function put(tool: CheckedTool, when: When<ToolAnnouncement>): Promise<ToolAnnouncement | null> {
    const former = await announce(bus.nc, announcementOf(tool), when);
    seen = null;
    return former;
  }

  const reportReplaced = (former: ToolAnnouncement | null, why: string) => {
    if (former)
      problem(`${name} was announced as another version, ${toolDigest(former)}${why}: this version is now in use`);
  };

  /** Waits for the heartbeat of an instance of a version, for at most the heartbeat timeout. */
  async function isHeard(digest: string): Promise<boolean> {
    const untilMs = performance.now() + SERVED_LIVENESS.ttlMs;
    while (!served().has(digest)) {
      const leftMs = untilMs - performance.now();
      if (leftMs <= 0 || others.cannotHear()) return false;
      await new Promise<void>((resolve) => {
        const late = setTimeout(resolve, leftMs);
        wake = () => {
          clearTimeout(late);
          resolve();
        };
      });
    }
    return true;
  }

  async function check(): Promise<void> {
    if (others.cannotHear() || performance.now() - listeningSinceMs < SERVED_LIVENESS.ttlMs) return;
    const now = served();
    const text = [changes, ...[...now].sort()].join();
    if (seen?.served === text && (seen.announced === NONE || now.has(seen.announced))) return;
    const current = await readAnnouncement(bus.nc, { at, schema: ToolAnnouncement });
    const announced = current.value ? toolDigest(current.value) : NONE;
    seen = { served: text, announced };
    // A removed announcement is not restored.
    if (announced === NONE || now.has(announced)) {
      unserved = null;
      return;
    }
    // The heartbeat of an instance that has just announced it may not have arrived yet.
    if (unserved?.revision !== current.revision) unserved = { revision: current.revision, sinceMs: performance.now() };
    else if (performance.now() - unserved.sinceMs > SERVED_LIVENESS.ttlMs) {
      reportReplaced(await put(own.tool(), { replacing: current }), ', which has no instances');
      unserved = null;
    }
  }

  function scheduleCheck(): void {
    timer = setTimeout(() => {
      const looked = bus.nc.isClosed() ? Promise.resolve() : check();
      // A failed check proves nothing: the next one follows.
      void looked.catch(() => undefined).finally(() => timer !== undefined && scheduleCheck());
    }, LOOKED_EVERY_MS);
    timer.unref();
  }

  return {
    async announceFirst() {
      const { value, headers } = await readAnnouncement(bus.nc, { at, schema: ToolAnnouncement });
      if (value && replacedIn(headers).includes(ownDigest()) && (await isHeard(toolDigest(value)))) {
        problem(`${name} was replaced by another served version, ${toolDigest(value)}`);
        return;
      }
      reportReplaced(await put(own.tool(), 'always'), '');
    },
    async announceNext(tool) {
      await put(tool, 'always');
    },
    async announceWhereMissing() {
      // Heartbeats from before the loss of the connection are outdated.
      listeningSinceMs = performance.now();
      await put(own.tool(), 'where_missing');
    },
    async withdraw() {
      // Another instance of the tool keeps the announcement, or replaces it.
      if (others.live().size === 0) await removeAnnouncement(bus.nc, at);
    },
    start: scheduleCheck,
    stop() {
      clearTimeout(timer);
      timer = undefined;
      endListening();
    },
  };
}

/** Lists the replaced versions, the newest last. */
function noteOf(replaced: readonly string[]): Record<string, string> {
  const newest = [...new Set(replaced)].slice(-REPLACED_MAX);
  return newest.length === 0 ? {} : { [REPLACED_HEADER]: newest.join(',') };
}

function replacedIn(headers: StoredAnnouncement<unknown>['headers']): string[] {
  return (headers?.get(REPLACED_HEADER) ?? '').split(',').filter((one) => /^[0-9a-f]{8}$/.test(one));
}
