/** Processes that serve tools, personas or hooks on the bus: their heartbeats, time limits and queue groups. */
import * as z from 'zod';

/** The kinds of served work. A kind is the first token of its keys in the registry and in the bucket of heartbeats. */
export type ServedKind = 'tools' | 'personas' | 'hooks';

/**
 * Time limits of served work, in milliseconds. An instance without a heartbeat for `ttlMs` is declared dead, and its
 * repeatable work (work.ts) is sent to another instance (`Asking` in libs/bus, asking.ts). Other work waits `silentMaxMs` for
 * a silent instance that is still connected: a blocked event loop looks like a frozen process. Work that no instance
 * accepts, and repeatable work while no other instance is alive, waits `unacceptedMaxMs`.
 */
export const SERVED_LIVENESS = {
  heartbeatMs: 300,
  ttlMs: 3_000,
  silentMaxMs: 5_000,
  unacceptedMaxMs: 15_000,
} as const;

/** The queue group of each kind: the instances of a service share its requests. */
export const QUEUE_GROUPS: Readonly<Record<ServedKind, string>> = {
  tools: 'cox-tools',
  personas: 'cox-personas',
  hooks: 'cox-hooks',
};

/**
 * The heartbeat of an instance. `draining` accepts no new work and finishes its own. `standby` does the same, and
 * accepts new work when another instance has gone. `gone` is the last one.
 */
export const Heartbeat = z.strictObject({
  v: z.literal(1),
  state: z.enum(['serving', 'draining', 'standby', 'gone']),
  /** The served version: that of a persona, or the digest of a tool. */
  version: z.string().min(1).max(128).optional(),
  /** Start time of the instance, for people. */
  since: z.iso.datetime().optional(),
  /** Number of running requests, for people. */
  running: z.number().int().nonnegative().optional(),
  /**
   * Only for tools of which one instance at a time accepts calls, the one with the newest claim: time of its claim,
   * milliseconds since 1970; 0 for never.
   */
  claimed: z.number().int().nonnegative().optional(),
});
export type Heartbeat = z.infer<typeof Heartbeat>;
