/** What hosts tell each other on the bus. */
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

/** See {@link HostLiveness}. */
export const HOST_LIVENESS: HostLiveness = { beatMs: 300, ttlMs: 2_000, leaseMs: 1_500 };

const host = z.string().regex(ID_PATTERN);

/**
 * What a host says of itself, again and again, counting. `serving`: it takes partitions. `leaving`: it takes none, and
 * ends what it has. `left`: it has nothing more.
 */
export const HostBeat = z.strictObject({
  v: z.literal(1),
  host,
  state: z.enum(['serving', 'leaving', 'left']),
  no: z.number().int().nonnegative(),
});
/** See {@link HostBeat}. */
export type HostBeat = z.infer<typeof HostBeat>;

/** A command has come for a session that another host works on; its place is 0 where the host is only asked for it. */
export const HostRing = z.strictObject({
  v: z.literal(1),
  tenant: TenantId,
  session_id: SessionId,
  seq: z.number().int().nonnegative(),
});
/** See {@link HostRing}. */
export type HostRing = z.infer<typeof HostRing>;

/** A session waits for its next host. */
export const HostRelease = HostRing.omit({ seq: true });
/** See {@link HostRelease}. */
export type HostRelease = z.infer<typeof HostRelease>;

/** The note of a session that has work under way. */
export const ActiveNote = z.strictObject({ v: z.literal(1), host: host.nullable() });
/** See {@link ActiveNote}. */
export type ActiveNote = z.infer<typeof ActiveNote>;

/** What a retention job answers: within what time it purges a session that is deleted now, milliseconds. */
export const RetentionAnswer = z.strictObject({
  v: z.literal(1),
  /** Records, timers and snapshots. */
  records_ms: z.number().positive(),
  /** Large fields and files that no other session refers to. */
  files_ms: z.number().positive(),
});
/** See {@link RetentionAnswer}. */
export type RetentionAnswer = z.infer<typeof RetentionAnswer>;
