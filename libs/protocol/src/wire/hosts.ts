/**
 * Messages between hosts on the bus.
 */
import * as z from 'zod';
import { ID_PATTERN, SessionId, TenantId } from './ids.ts';

/**
 * The heartbeat interval of a host, the time after which others declare it dead, and its own lease. The lease is
 * shorter: an isolated host stops before another host claims its sessions. All hosts of a bus have the same values.
 */
export interface HostLiveness {
  readonly beatMs: number;
  readonly ttlMs: number;
  readonly leaseMs: number;
}

/** The intervals of every host, in milliseconds. */
export const HOST_LIVENESS: HostLiveness = { beatMs: 300, ttlMs: 2_000, leaseMs: 1_500 };

const host = z.string().regex(ID_PATTERN);

/**
 * The heartbeat of a host, with a counter. `serving`: it accepts partitions. `leaving`: it accepts none and ends its
 * work. `left`: it has no work.
 */
export const HostBeat = z.strictObject({
  v: z.literal(1),
  host,
  state: z.enum(['serving', 'leaving', 'left']),
  no: z.number().int().nonnegative(),
});
export type HostBeat = z.infer<typeof HostBeat>;

/**
 * Notification to the owner of a session of a command at this inbox position. `seq` 0 only asks whether the host still
 * has the session; without the session, it answers with {@link HostRelease}.
 */
export const HostRing = z.strictObject({
  v: z.literal(1),
  tenant: TenantId,
  session_id: SessionId,
  seq: z.number().int().nonnegative(),
});
export type HostRing = z.infer<typeof HostRing>;

/** Notification to all hosts that the sending host has left a session, or does not have it. */
export const HostRelease = HostRing.omit({ seq: true });
export type HostRelease = z.infer<typeof HostRelease>;

/** The note of a session with unfinished work. `host`: its owner; null if it waits for its next one. */
export const ActiveNote = z.strictObject({ v: z.literal(1), host: host.nullable() });
export type ActiveNote = z.infer<typeof ActiveNote>;

/** Answer of the retention job: the time until it purges a session that is deleted now, milliseconds. */
export const RetentionAnswer = z.strictObject({
  v: z.literal(1),
  /** Records, timers and snapshots. */
  records_ms: z.number().positive(),
  /** Large fields and files that no other session refers to. */
  files_ms: z.number().positive(),
});
export type RetentionAnswer = z.infer<typeof RetentionAnswer>;
