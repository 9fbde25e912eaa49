/** Processes that serve tools, personas or hooks on the bus: their heartbeats, time limits and queue groups. */
import * as z from 'zod';

/** The kinds of served work. A kind is the first token of its keys in the registry and in the bucket of heartbeats. */
export type ServedKind = 'tools' | 'personas' | 'hooks';

/**
 * Time limits of served work, in milliseconds; `Asking` applies them (libs/bus, asking.ts). work.ts says which work is
 * repeatable.
 */
export const SERVED_LIVENESS = {
  /** Interval of the heartbeats of an instance. */
  heartbeatMs: 300,
  /**
   * Silence after which an instance counts as dead, and its repeatable work moves to another instance. A hook with a
   * short time limit waits less.
   */
  ttlMs: 3_000,
  /**
   * Silence of a connected instance after which work that is not repeatable is lost. Longer than `ttlMs`: a blocked
   * event loop looks like a frozen process.
   */
  silentMaxMs: 5_000,
  /**
   * Time that a call waits until an instance accepts it, and that repeatable work waits for its silent instance while
   * no other one is alive.
   */
  unacceptedMaxMs: 15_000,
} as const;

/** The queue group of each kind: the instances of a service share its requests. */
export const QUEUE_GROUPS: Readonly<Record<ServedKind, string>> = {
  tools: 'cox-tools',
  personas: 'cox-personas',
  hooks: 'cox-hooks',
};

/**
 * The heartbeat of an instance. `draining`: it finishes its calls and steps and accepts no new ones; it still answers
 * questions. `standby`: it accepts no new work until it takes over from another instance. `gone`: its last heartbeat.
 */
export const Heartbeat = z.strictObject({
  v: z.literal(1),
  state: z.enum(['serving', 'draining', 'standby', 'gone']),
  /** The served version of a persona, or the digest of a tool (`toolDigest`). */
  version: z.string().min(1).max(128).optional(),
  /** Start time of the instance, for people. */
  since: z.iso.datetime().optional(),
  /** Number of running requests, for people. */
  running: z.number().int().nonnegative().optional(),
  /**
   * Only for tools of which one instance at a time accepts calls, the one with the newest claim: the time of this
   * instance's claim, milliseconds since 1970; 0 without a claim.
   */
  claimed: z.number().int().nonnegative().optional(),
});
export type Heartbeat = z.infer<typeof Heartbeat>;
